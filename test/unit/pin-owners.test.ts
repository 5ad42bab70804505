import { describe, expect, test } from 'vitest';
import { judgePin, type PinFacts } from '../../src/judge/pin.ts';
import type { ClusterView } from '../../src/model/view.ts';

/* Pins by a source that tells which pods end, and which address passed from one pod to another. Grace 10 s. */
const ip = '10.0.0.1';
const view: ClusterView = {
  cluster: 'c',
  source: 'kubernetes',
  subject: 'shop/cart',
  firstAnswerMs: 0,
  lastAnswerMs: 299_000,
  staleAfterMs: 60_000,
  graceMs: 10_000,
  sameAsProxy: true,
  listed: new Map(),
  left: new Map(),
  changes: { added: 0, removed: 0 },
  lastError: undefined,
};

function pinOf(change: Partial<ClusterView>, facts: Partial<PinFacts> = {}) {
  const { pin, reason, leftAtMs } = judgePin({
    view: { ...view, ...change },
    endpoint: { text: `${ip}:80`, kind: 'ip', ip, port: 80 },
    connectionOpenedMs: 50_000,
    requestStartMs: 300_000,
    nowMs: 300_000,
    clockUncertaintyMs: 100,
    ...facts,
  });
  return [pin, reason ?? leftAtMs];
}

describe('an endpoint that was told to end', () => {
  const left = new Map([[ip, 100_000]]);
  const ending = (goneMs?: number) => ({ left, terminating: new Map([[ip, { sinceMs: 100_000, goneMs }]]) });

  test('is draining for as long as it is there, whatever the grace', () => {
    expect(pinOf({ left })).toEqual(['stale', 100_000]);
    expect(pinOf(ending())).toEqual(['draining', 100_000]);
    expect(pinOf({ ...ending(), graceMs: 0 })).toEqual(['draining', 100_000]);
  });

  test('is draining until the grace after it was gone, then stale', () => {
    expect(pinOf(ending(290_000))).toEqual(['draining', 100_000]);
    expect(pinOf(ending(289_000))).toEqual(['stale', 100_000]);
  });

  test('was current before it was told', () => {
    expect(pinOf(ending(290_000), { nowMs: 99_000, requestStartMs: 98_000 })).toEqual(['current', undefined]);
  });

  test('a connection that was opened after the grace after it was gone comes of an old list', () => {
    expect(pinOf(ending(150_000), { connectionOpenedMs: 155_000 })).toEqual(['stale', 100_000]);
    expect(pinOf(ending(150_000), { connectionOpenedMs: 165_000 })).toEqual(['stale_view', 100_000]);
  });
});

describe('an address that passed to another pod', () => {
  /** The first pod left at 100,000, the second one was seen with its address at 200,000. */
  const owner = { leftAtMs: 100_000, graceFromMs: 100_000, nextFromMs: 199_000, nextByMs: 200_000 };
  const passed = { listed: new Map([[ip, 200_000]]), earlier: new Map([[ip, [owner]]]) };
  const opened = (connectionOpenedMs: number | undefined, more: Partial<PinFacts> = {}) =>
    pinOf(passed, { connectionOpenedMs, ...more });

  test('a connection of before that is on the one that left', () => {
    expect(opened(50_000)).toEqual(['stale', 100_000]);
    expect(opened(198_800)).toEqual(['stale_view', 100_000]);
    expect(opened(50_000, { nowMs: 105_000, requestStartMs: 105_000 })).toEqual(['draining', 100_000]);
    expect(opened(50_000, { nowMs: 95_000, requestStartMs: 95_000 })).toEqual(['current', undefined]);
  });

  test('a connection of after that is on the one that is listed', () => {
    expect(opened(200_200)).toEqual(['current', undefined]);
  });

  test('one of about that time may be on either, as far as the clocks tell', () => {
    for (const ms of [198_950, 199_500, 200_050]) expect(opened(ms)).toEqual(['unknown', 'owner_unclear']);
    expect(opened(50_000, { clockUncertaintyMs: Number.POSITIVE_INFINITY })).toEqual(['unknown', 'owner_unclear']);
  });

  test('one of unknown age may be on either', () => {
    expect(opened(undefined)).toEqual(['unknown', 'age_unknown']);
  });

  test('after the second one left too, each connection is judged by its own', () => {
    const both = { left: new Map([[ip, 295_000]]), earlier: passed.earlier };
    expect(pinOf(both, { connectionOpenedMs: 50_000 })).toEqual(['stale', 100_000]);
    expect(pinOf(both, { connectionOpenedMs: 250_000 })).toEqual(['draining', 295_000]);
  });

  test('of three, each connection belongs to one', () => {
    const second = { leftAtMs: 293_000, graceFromMs: 293_000, nextFromMs: 294_000, nextByMs: 294_500 };
    const thrice = { listed: new Map([[ip, 294_500]]), earlier: new Map([[ip, [owner, second]]]) };
    expect(pinOf(thrice, { connectionOpenedMs: 50_000 })).toEqual(['stale', 100_000]);
    expect(pinOf(thrice, { connectionOpenedMs: 250_000 })).toEqual(['draining', 293_000]);
    expect(pinOf(thrice, { connectionOpenedMs: 295_000 })).toEqual(['current', undefined]);
  });
});
