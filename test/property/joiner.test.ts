import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Joiner, type JoinStream } from '../../src/assemble/joiner.ts';
import type { Exchange } from '../../src/model/exchange.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import { downstreamEnd, endpoint, reporter, upstreamEnd } from '../support/entries.ts';

const stream: JoinStream = { id: 1, profile: 'full', reporter };
const options = { lingerMs: 2000, maxWaitMs: 60_000, maxExchanges: 1000, maxAttempts: 8 };

/** The entries of one exchange: 0-4 attempts (some refused, some side by side), perhaps a redirect, a mirror, a double. */
const exchangeEntries = fc
  .record({
    attempts: fc.array(
      fc.record({
        offsetMs: fc.nat(50),
        code: fc.constantFrom(200, 503, undefined),
        peer: fc.constantFrom('11', '12', '13'),
      }),
      { maxLength: 4 },
    ),
    redirect: fc.boolean(),
    mirror: fc.boolean(),
    double: fc.boolean(),
  })
  .map(({ attempts, redirect, mirror, double }) => (key: string): LogEntry[] => {
    const tries = attempts.map(({ offsetMs, code, peer }) =>
      upstreamEnd({ key, startMs: 1000 + offsetMs, code, upstream: endpoint(`127.0.0.${peer}:8080`) }),
    );
    const end = downstreamEnd({ key, durationMs: 100, attemptCount: attempts.length });
    return [
      ...tries,
      end,
      ...(redirect ? [downstreamEnd({ key, durationMs: 1, codeDetails: 'internal_redirect', attemptCount: 0 })] : []),
      ...(mirror ? [upstreamEnd({ key, downstreamRemote: undefined })] : []),
      ...(double ? [end, ...tries] : []),
    ];
  });

function join(entries: readonly LogEntry[], atMs: (index: number) => number): Exchange[] {
  const exchanges: Exchange[] = [];
  const joiner = new Joiner(options, { exchange: (exchange) => exchanges.push(exchange), count: () => {} });
  entries.forEach((entry, index) => {
    joiner.advance(atMs(index));
    joiner.add(stream, entry, atMs(index));
  });
  joiner.advance(atMs(entries.length) + options.lingerMs);
  return exchanges.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

it('gives one result for every interleaving of entries that come within a linger', () => {
  const scene = fc
    .array(exchangeEntries, { minLength: 1, maxLength: 6 })
    .map((makers) => makers.flatMap((make, index) => make(`k${index}`)))
    .chain((entries) => fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length })));
  fc.assert(
    fc.property(scene, ([inOrder, shuffled]) => {
      const expected = join(inOrder, () => 0);
      expect(join(shuffled, (index) => index)).toEqual(expected);
      expect(new Set(expected.map((exchange) => exchange.key)).size).toBe(expected.length);
    }),
  );
});

it('loses no attempt: each is in an exchange or counted, whatever streams of one node end meanwhile', () => {
  const step = fc.record({
    kind: fc.constantFrom('try', 'end', 'cut', 'wait'),
    key: fc.nat(5),
    stream: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let tries = 0;
      let found = 0;
      let counted = 0;
      const joiner = new Joiner(options, {
        exchange: ({ attempts }) => (found += attempts.length),
        count: (event) => (counted += event === 'late' || event === 'refused' ? 1 : 0),
      });
      steps.forEach(({ kind, key, stream: id }, index) => {
        const nowMs = index * 700;
        const on = { ...stream, id };
        if (kind === 'wait') joiner.advance(nowMs);
        else if (kind === 'cut') joiner.endStream(id, nowMs);
        else if (kind === 'end') joiner.add(on, downstreamEnd({ key: `k${key}`, attemptCount: 0 }), nowMs);
        else joiner.add(on, upstreamEnd({ key: `k${key}`, startMs: (tries += 1) }), nowMs);
      });
      joiner.flush();
      // A late or refused end is no attempt.
      expect(found).toBeLessThanOrEqual(tries);
      expect(found + counted).toBeGreaterThanOrEqual(tries);
    }),
  );
});

it('never holds more than its bound, and gives out each key at most once', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('try' as const), key: fc.nat(40), stream: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant('end' as const), key: fc.nat(40), stream: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant('cut' as const), key: fc.nat(40), stream: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant('wait' as const), key: fc.nat(3000), stream: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 10 }), (steps, maxExchanges) => {
      let nowMs = 0;
      let given = 0;
      let entries = 0;
      const joiner = new Joiner({ ...options, maxExchanges }, { exchange: () => given++, count: () => {} });
      for (const { kind, key, stream: id } of steps) {
        const on = { ...stream, id };
        if (kind === 'wait') joiner.advance((nowMs += key));
        else if (kind === 'cut') joiner.endStream(id, nowMs);
        else {
          entries += 1;
          joiner.add(on, kind === 'try' ? upstreamEnd({ key: `k${key}` }) : downstreamEnd({ key: `k${key}` }), nowMs);
        }
        expect(joiner.size).toBeLessThanOrEqual(maxExchanges);
      }
      joiner.flush();
      expect(joiner.size).toBe(0);
      expect(given).toBeLessThanOrEqual(entries);
    }),
  );
});
