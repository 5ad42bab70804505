import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mergeHolders } from '../../src/cli/drained/merge-holders.ts';
import {
  type DrainFacts,
  drainStates,
  type EndpointFacts,
  type HeldConnection,
  type ReplicaFacts,
  type ReporterFacts,
} from '../../src/judge/drain-facts.ts';
import { judgeDrained } from '../../src/judge/drained.ts';
import { pinUnknownReasons } from '../../src/model/verdict.ts';
import { drainFacts, endpointFacts, heldConnection, hour, minute, nowMs } from '../support/drain-facts.ts';
import { cart, shop } from '../support/fake-replica.ts';

/** Few values near what matters, so that the good verdicts come up often. */
const longAgo = fc.constantFrom(nowMs - 2 * hour, nowMs - 10 * minute, nowMs - minute);
const time = fc.oneof({ weight: 6, arbitrary: longAgo }, { weight: 1, arbitrary: fc.constant(nowMs - 1000) });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const reporter = fc.constantFrom(shop, cart);

const holder: fc.Arbitrary<HeldConnection> = fc
  .record({
    reporter,
    state: fc.constantFrom('open' as const, 'idle' as const, 'unseen' as const),
    connectionId: fc.constantFrom('1', '2'),
    openedMs: longAgo,
    lastUsedMs: time,
    mayBeOpenUntilMs: maybe(fc.constantFrom(nowMs - 1, nowMs, nowMs + 1, nowMs + hour)),
  })
  .map(heldConnection);

/** Mostly none: one bad thing of many spoils every good verdict. */
const few = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.array(value, { maxLength: 3 }) });

const endpoint: fc.Arbitrary<EndpointFacts> = fc
  .record({
    state: fc.oneof(
      { weight: 5, arbitrary: fc.constant('left' as const) },
      { weight: 1, arbitrary: fc.constantFrom('listed' as const, 'unlisted' as const, 'unknown' as const) },
    ),
    reason: maybe(fc.constantFrom(...pinUnknownReasons)),
    leftAtMs: maybe(time),
    graceEndsMs: maybe(time),
    lastUsedMs: maybe(time),
    listedBy: few(fc.constant('node-1')),
    forgottenUntilMs: fc.constantFrom(undefined, undefined, undefined, nowMs, nowMs + 1, Number.POSITIVE_INFINITY),
    holders: few(holder),
    moreHolders: fc.constantFrom(
      { open: 0, idle: 0, unseen: 0 },
      { open: 0, idle: 0, unseen: 0 },
      { open: 0, idle: 0, unseen: 2 },
      { open: 1, idle: 0, unseen: 0 },
    ),
    users: few(reporter),
    knownTo: fc.constantFrom(['one'], ['one'], []),
  })
  .map(endpointFacts);

const replica: fc.Arbitrary<ReplicaFacts> = fc
  .record({
    name: fc.constantFrom('one', 'two'),
    startedMs: time,
    truncated: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    problem: few(
      fc.record({
        reason: fc.constantFrom('replica_unreachable' as const, 'answer_invalid' as const),
        detail: fc.constant('d'),
      }),
    ),
  })
  .map(({ problem: [problem], ...one }) => ({ ...one, problem }));

const reporterFact: fc.Arbitrary<ReporterFacts> = fc.record({
  reporter,
  profile: fc.constantFrom('observe' as const, 'observe' as const, 'full' as const, 'tag' as const),
  configVersion: fc.constantFrom(2, 2, 2, 1),
  connected: fc.constantFrom(true, true, true, false),
  lastEntryMs: time,
});

const anyFacts: fc.Arbitrary<DrainFacts> = fc.record({
  nowMs: fc.constant(nowMs),
  quietForMs: fc.constantFrom(1, minute, hour),
  ignored: few(fc.constantFrom(shop.pod, cart.nodeId, '')),
  replicas: fc.array(replica, { maxLength: 2 }),
  endpoints: fc.array(endpoint, { maxLength: 2 }),
  nameIsKnown: fc.boolean(),
  reporters: fc.array(reporterFact, { maxLength: 3 }),
  expected: fc.option(
    fc.record({
      missing: few(fc.constantFrom({ namespace: 'web', pod: shop.pod }, { namespace: 'web', pod: 'late-1' })),
      unknown: fc.option(fc.constant({ subject: 'web', error: '' }), { nil: undefined }),
    }),
    { nil: undefined },
  ),
  gaps: few(
    fc.record({
      reason: fc.constantFrom('no_reporter' as const, 'reporter_silent' as const),
      subject: fc.constant(''),
      endedMs: time,
    }),
  ),
});

/** What is drained, with some of it otherwise: left to chance, hardly anything is. */
const parts = [
  'quietForMs',
  'ignored',
  'replicas',
  'endpoints',
  'nameIsKnown',
  'reporters',
  'expected',
  'gaps',
] as const;
const facts = fc
  .tuple(anyFacts, fc.subarray([...parts]))
  .map(([other, changed]) => drainFacts(Object.fromEntries(changed.map((part) => [part, other[part]]))));

const rank = (one: DrainFacts) => drainStates.indexOf(judgeDrained(one).state);

test('drained is never said while a connection can be there, or something is hidden, or it was not quiet for so long', () => {
  let drained = 0;
  fc.assert(
    fc.property(facts, (one) => {
      const verdict = judgeDrained(one);
      if (verdict.state !== 'drained') return;
      drained += 1;
      const counts = (held: HeldConnection) =>
        !one.ignored.some((id) => id !== '' && (id === held.reporter.nodeId || id === held.reporter.pod));
      const there = one.endpoints
        .flatMap(({ holders }) => holders)
        .filter(counts)
        .filter(({ state, mayBeOpenUntilMs }) => state === 'open' || !(Number(mayBeOpenUntilMs) <= nowMs));
      expect(there).toEqual([]);
      expect(verdict.blind).toEqual([]);
      expect(verdict.quietMs).toBeGreaterThanOrEqual(one.quietForMs);
      expect(one.replicas.some(({ problem }) => problem === undefined)).toBe(true);
      for (const { state, lastUsedMs = 0, leftAtMs = 0, moreHolders } of one.endpoints) {
        expect(state).not.toBe('listed');
        expect(nowMs - Math.max(lastUsedMs, leftAtMs)).toBeGreaterThanOrEqual(one.quietForMs);
        expect(moreHolders).toEqual({ open: 0, idle: 0, unseen: 0 });
      }
    }),
    { numRuns: 3000 },
  );
  expect(drained).toBeGreaterThan(200);
});

test('one more connection never makes it better', () => {
  fc.assert(
    fc.property(facts, holder, (one, more) => {
      const [first, ...rest] = one.endpoints;
      if (first === undefined) return;
      const worse = { ...one, endpoints: [{ ...first, holders: [...first.holders, more] }, ...rest] };
      expect(rank(worse)).toBeGreaterThanOrEqual(rank(one));
    }),
    { numRuns: 2000 },
  );
});

test('a replica that does not answer, a gap or a use never makes it better', () => {
  fc.assert(
    fc.property(facts, time, (one, atMs) => {
      const away: ReplicaFacts = {
        name: 'three',
        problem: { reason: 'replica_unreachable', detail: '' },
        startedMs: undefined,
        truncated: false,
      };
      const gap = { reason: 'reporter_silent' as const, subject: '', endedMs: atMs };
      const used = one.endpoints.map((each) => ({ ...each, lastUsedMs: Math.max(each.lastUsedMs ?? 0, atMs) }));
      for (const worse of [
        { ...one, replicas: [...one.replicas, away] },
        { ...one, gaps: [...one.gaps, gap] },
        { ...one, endpoints: used },
      ])
        expect(rank(worse)).toBeGreaterThanOrEqual(rank(one));
    }),
    { numRuns: 1000 },
  );
});

test('the order in which replicas and endpoints are told changes nothing', () => {
  fc.assert(
    fc.property(facts, (one) => {
      const turned = {
        ...one,
        replicas: one.replicas.toReversed(),
        endpoints: one.endpoints.toReversed(),
        reporters: one.reporters.toReversed(),
      };
      expect(rank(turned)).toBe(rank(one));
      expect(judgeDrained(turned).quietMs).toBe(judgeDrained(one).quietMs);
    }),
    { numRuns: 500 },
  );
});

test('of connections told by several replicas none is lost, none doubled, and none of one replica becomes another', () => {
  fc.assert(
    fc.property(fc.array(fc.array(holder, { maxLength: 4 }), { maxLength: 3 }), (told) => {
      const id = ({ reporter: { pod }, connectionId, openedMs }: HeldConnection) =>
        `${pod} ${connectionId} ${openedMs}`;
      const countOf = (held: readonly HeldConnection[], wanted: string) =>
        held.filter((one) => id(one) === wanted).length;
      const merged = mergeHolders(told);
      for (const wanted of new Set([...told.flat(), ...merged].map(id)))
        expect(countOf(merged, wanted)).toBe(Math.max(...told.map((held) => countOf(held, wanted))));
      const last = (held: readonly HeldConnection[]) => Math.max(0, ...held.map(({ lastUsedMs }) => lastUsedMs));
      expect(last(merged)).toBe(last(told.flat()));
    }),
  );
});
