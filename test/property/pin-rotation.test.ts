import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clusterView } from '../../src/discovery/cluster-view.ts';
import { dnsGrace } from '../../src/discovery/grace.ts';
import { learn, nothingKnown } from '../../src/discovery/knowledge.ts';
import { judgePin } from '../../src/judge/pin.ts';

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

test('a name that rotates over 8 addresses never makes a pin stale', () => {
  fc.assert(
    fc.property(answers, (rounds) => {
      let knowledge = nothingKnown;
      rounds.forEach((endpoints, round) => {
        // A moment before the next answer an absence is longest.
        const nowMs = (round + 1) * 5000 - 1;
        knowledge = learn(knowledge, { endpoints, atMs: round * 5000, grace: dnsGrace(1000, 5000) }, 100).knowledge;
        const view = clusterView({ cluster: 'c', source: 'dns', subject: 'a.example' }, knowledge, settings);
        const judged = addresses.map((ip) =>
          judgePin({
            view,
            endpoint: { text: ip, kind: 'ip', ip, port: 80 },
            connectionOpenedMs: 1,
            requestStartMs: nowMs,
            nowMs,
            clockUncertaintyMs: 0,
          }),
        );
        expect(judged.map(({ pin }) => pin)).not.toContain('stale');
      });
    }),
    { numRuns: 300 },
  );
});
