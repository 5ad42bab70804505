import fc from 'fast-check';
import { expect, test } from 'vitest';
import { judgePin, type PinFacts } from '../../src/judge/pin.ts';
import { pins } from '../../src/model/verdict.ts';

const addresses = ['10.0.0.1', '10.0.0.2', '::1'];
/** Few values, so that equal and neighbouring times come up often. */
const time = fc.integer({ min: 0, max: 60 });
const optionalTime = fc.option(time, { nil: undefined });
const key = fc.constantFrom(...addresses, '10.0.0.1:80', '[::1]:80');
const times = fc.array(fc.tuple(key, time)).map((pairs) => new Map(pairs));

const view = fc.record({
  cluster: fc.constant('c'),
  source: fc.constantFrom('dns' as const, 'file' as const),
  subject: fc.constant('s'),
  firstAnswerMs: optionalTime,
  lastAnswerMs: optionalTime,
  staleAfterMs: time,
  graceMs: time,
  sameAsProxy: fc.boolean(),
  listed: times,
  left: times,
  changes: fc.constant({ added: 0, removed: 0 }),
  lastError: fc.constant(undefined),
});

const endpoint = fc.record({
  text: fc.constant('e'),
  kind: fc.constantFrom('ip' as const, 'pipe' as const, 'internal' as const, 'other' as const),
  ip: fc.option(fc.constantFrom(...addresses), { nil: undefined }),
  port: fc.constantFrom(undefined, 80, 81),
});

const facts: fc.Arbitrary<PinFacts> = fc.record({
  view: fc.option(view, { nil: undefined }),
  endpoint,
  connectionOpenedMs: optionalTime,
  requestStartMs: optionalTime,
  nowMs: time,
  clockUncertaintyMs: fc.integer({ min: 0, max: 5 }),
});

/** Facts of which a good part is an alarm: the generators above would seldom make one. */
const likelyAlarm: fc.Arbitrary<PinFacts> = fc
  .record({
    base: facts,
    seen: view,
    left: fc.array(fc.tuple(key, fc.integer({ min: 10, max: 35 })), { minLength: 3 }).map((pairs) => new Map(pairs)),
    listed: fc.array(fc.tuple(key, time), { maxLength: 2 }).map((pairs) => new Map(pairs)),
    graceMs: fc.integer({ min: 0, max: 15 }),
    ip: fc.constantFrom(...addresses),
    connectionOpenedMs: time,
    requestStartMs: fc.option(fc.integer({ min: 25, max: 60 }), { nil: undefined }),
    nowMs: fc.integer({ min: 40, max: 60 }),
  })
  .map(({ base, seen, left, listed, graceMs, ip, ...ages }) => ({
    ...base,
    ...ages,
    endpoint: { ...base.endpoint, ip },
    view: { ...seen, firstAnswerMs: 0, lastAnswerMs: 40, left, listed, graceMs, sameAsProxy: true },
  }));

const runs = { numRuns: 3000 };

test('there is always a verdict; a reason goes with unknown alone, a leaving with what left alone', () => {
  fc.assert(
    fc.property(facts, (given) => {
      const verdict = judgePin(given);
      expect(pins).toContain(verdict.pin);
      expect(verdict.reason !== undefined).toBe(verdict.pin === 'unknown');
      expect(verdict.leftAtMs !== undefined).toBe(['draining', 'stale', 'stale_view'].includes(verdict.pin));
      expect(verdict.source).toBe(given.view?.source);
    }),
    runs,
  );
});

test('an alarm is raised only against an endpoint that left, by a source that is fresh and sees what the proxy sees', () => {
  fc.assert(
    fc.property(fc.oneof(facts, likelyAlarm), (given) => {
      const verdict = judgePin(given);
      fc.pre(verdict.pin === 'stale' || verdict.pin === 'stale_view');
      const { view: seen, endpoint: peer, nowMs } = given;
      expect(seen?.sameAsProxy).toBe(true);
      expect(nowMs - (seen?.lastAnswerMs ?? Number.NEGATIVE_INFINITY)).toBeLessThanOrEqual(seen?.staleAfterMs ?? -1);
      expect(seen?.listed.has(peer.ip ?? '')).toBe(false);
      expect(seen?.listed.has('10.0.0.1:80') && peer.ip === '10.0.0.1' && peer.port === 80).toBe(false);
    }),
    { numRuns: 500 },
  );
});

test('a stale pin was used after the grace, over a connection of before its end, whatever the clocks', () => {
  fc.assert(
    fc.property(fc.oneof(facts, likelyAlarm), (given) => {
      const verdict = judgePin(given);
      fc.pre(verdict.pin === 'stale');
      const leftAtMs = verdict.leftAtMs ?? Number.POSITIVE_INFINITY;
      const usedAtMs = Math.min(given.nowMs, given.requestStartMs ?? given.nowMs);
      expect(usedAtMs - given.clockUncertaintyMs - leftAtMs).toBeGreaterThanOrEqual(given.view?.graceMs ?? Infinity);
      expect(given.connectionOpenedMs).toBeLessThan(leftAtMs + (given.view?.graceMs ?? 0));
    }),
    { numRuns: 300 },
  );
});

test('more uncertainty of the clocks never makes a pin stale', () => {
  fc.assert(
    fc.property(fc.oneof(facts, likelyAlarm), fc.integer({ min: 0, max: 20 }), (given, more) => {
      const before = judgePin(given).pin;
      const after = judgePin({ ...given, clockUncertaintyMs: given.clockUncertaintyMs + more }).pin;
      expect(after === 'stale' && before !== 'stale').toBe(false);
    }),
    runs,
  );
});
