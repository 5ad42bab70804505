import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clusterView } from '../../src/discovery/cluster-view.ts';
import { dnsGrace } from '../../src/discovery/grace.ts';
import { type Knowledge, learn, nothingKnown } from '../../src/discovery/knowledge.ts';
import { openWindow, slideWindow } from '../../src/discovery/window.ts';
import { judgePin } from '../../src/judge/pin.ts';
import { hasLeft, type Pin } from '../../src/model/verdict.ts';

const addresses = Array.from({ length: 8 }, (_, i) => `10.0.0.${i + 1}`);
const settings = { staleAfterMs: 60_000, sameAsProxy: true, graceMs: undefined };

/**
 * Each answer is another subset of 8 addresses, by turns or at random. TTL 1 s, a question every 5 s. (A subset that
 * changes once and then stays is a flip by all that can be seen.)
 */
const answers = fc.oneof(
  fc
    .record({ size: fc.integer({ min: 1, max: 4 }), step: fc.integer({ min: 1, max: 4 }) })
    .map(({ size, step }) => Array.from({ length: 30 }, (_, round) => turn(round * step, size))),
  fc
    .integer({ min: 1, max: 7 })
    .chain((size) => fc.array(fc.shuffledSubarray(addresses, { minLength: size, maxLength: size }), { minLength: 30 }))
    .map((rounds) => rounds.filter((endpoints, i) => sorted(endpoints) !== sorted(rounds[i - 1] ?? []))),
);

function sorted(endpoints: readonly string[]): string {
  return endpoints.toSorted((a, b) => a.localeCompare(b)).join(' ');
}

function turn(from: number, size: number): string[] {
  return Array.from({ length: size }, (_, i) => addresses[(from + i) % addresses.length] ?? '');
}

/** The pin of a connection to each address that is as old as all, a moment before the next answer: an absence is longest. */
function pinsAfter(knowledge: Knowledge, round: number): Pin[] {
  const nowMs = (round + 1) * 5000 - 1;
  const view = clusterView({ cluster: 'c', source: 'dns', subject: 'a.example' }, knowledge, settings);
  return addresses.map((ip) => {
    const endpoint = { text: ip, kind: 'ip', ip, port: 80 } as const;
    const facts = { view, endpoint, connectionOpenedMs: 1, requestStartMs: nowMs, nowMs, clockUncertaintyMs: 0 };
    return judgePin(facts).pin;
  });
}

test('a name that rotates over 8 addresses never makes a pin stale', () => {
  fc.assert(
    fc.property(answers, (rounds) => {
      let knowledge = nothingKnown;
      rounds.forEach((endpoints, round) => {
        knowledge = learn(knowledge, { endpoints, atMs: round * 5000, grace: dnsGrace(1000, 5000) }, 100).knowledge;
        expect(pinsAfter(knowledge, round)).not.toContain('stale');
      });
    }),
    { numRuns: 300 },
  );
});

test('in a window an address is listed until exactly its time after the last answer that had it, and then has left', () => {
  fc.assert(
    fc.property(answers, fc.integer({ min: 1, max: 20 }), (rounds, windowSeconds) => {
      const windowMs = windowSeconds * 5000;
      const lastSeenMs = new Map<string, number>();
      let windowed = openWindow(nothingKnown, windowMs);
      rounds.forEach((endpoints, round) => {
        const atMs = round * 5000;
        for (const endpoint of endpoints) lastSeenMs.set(endpoint, atMs);
        windowed = slideWindow(windowed, { endpoints, atMs, grace: dnsGrace(1000, 5000) }, windowMs, 100);
        const { listed, left } = windowed.knowledge;
        for (const [endpoint, seenMs] of lastSeenMs) {
          const overMs = seenMs + windowMs;
          expect([listed.has(endpoint), left.byEndpoint.get(endpoint)]).toEqual(
            atMs < overMs ? [true, undefined] : [false, overMs],
          );
        }
      });
    }),
    { numRuns: 300 },
  );
});

test('in a window as long as the rotation takes no endpoint ever leaves', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 }), (size, step) => {
      let windowed = openWindow(nothingKnown, 60_000);
      for (let round = 0; round < 40; round += 1) {
        const answer = { endpoints: turn(round * step, size), atMs: round * 5000, grace: dnsGrace(1000, 5000) };
        windowed = slideWindow(windowed, answer, 60_000, 100);
        expect(pinsAfter(windowed.knowledge, round).filter((pin) => hasLeft(pin))).toEqual([]);
      }
    }),
  );
});
