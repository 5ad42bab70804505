import { describe, expect, test } from 'vitest';
import { judgePin, type PinFacts } from '../../src/judge/pin.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import type { ClusterView } from '../../src/model/view.ts';
import { tunnelled } from '../support/entries.ts';

/** A view that began at 100,000, in which 10.0.0.11 left at 200,000 for 10.0.0.12; grace 10 s. */
const view: ClusterView = {
  cluster: 'c',
  source: 'dns',
  subject: 'a.example.com',
  firstAnswerMs: 100_000,
  lastAnswerMs: 299_000,
  staleAfterMs: 60_000,
  graceMs: 10_000,
  sameAsProxy: true,
  listed: new Map([['10.0.0.12', 200_000]]),
  left: new Map([['10.0.0.11', 200_000]]),
  changes: { added: 1, removed: 1 },
  lastError: undefined,
};

const old = ip('10.0.0.11');
const listed = ip('10.0.0.12');
const stranger = ip('10.0.0.99');

function ip(address: string, port = 8080): Endpoint {
  return { text: `${address}:${port}`, kind: 'ip', ip: address, port };
}

/** A request at 300,000 over a connection of 150,000: to the old endpoint it is a stale pin. */
const staleFacts: PinFacts = {
  view,
  endpoint: old,
  connectionOpenedMs: 150_000,
  requestStartMs: 300_000,
  nowMs: 300_000,
  clockUncertaintyMs: 0,
};

function judge(change: Partial<PinFacts>) {
  return judgePin({ ...staleFacts, ...change });
}

function withView(change: Partial<ClusterView>): ClusterView {
  return { ...view, ...change };
}

test('a connection of before the leaving, used after the grace, is a stale pin, with when and by which source', () => {
  expect(judge({})).toEqual({ pin: 'stale', reason: undefined, leftAtMs: 200_000, source: 'dns' });
});

describe('unknown, with its reason', () => {
  test.each<[string, Partial<PinFacts>, string]>([
    ['no source covers the cluster', { view: undefined }, 'no_source'],
    [
      'a pipe has no address',
      { endpoint: { text: '/run/a.sock', kind: 'pipe', ip: undefined, port: undefined } },
      'no_address',
    ],
    [
      'another resolver than the proxy, even for a listed endpoint',
      { view: withView({ sameAsProxy: false }), endpoint: listed },
      'other_resolver',
    ],
    [
      'an Envoy-internal listener has no address',
      { endpoint: { text: 'envoy://main_internal/', kind: 'internal', ip: undefined, port: undefined } },
      'no_address',
    ],
    ['a tunnel leads to what was never listed', { endpoint: tunnelled('10.2.0.10:80') }, 'tunnelled'],
    [
      'nothing came back through a tunnel to an endpoint that left',
      { endpoint: tunnelled('10.0.0.11:8080'), connectionOpenedMs: undefined },
      'tunnelled',
    ],
    ['no answer yet', { view: withView({ firstAnswerMs: undefined, lastAnswerMs: undefined }) }, 'no_answer_yet'],
    [
      'a stale source, even for a listed endpoint',
      { view: withView({ lastAnswerMs: 239_999 }), endpoint: listed },
      'source_stale',
    ],
    [
      'never listed, and the connection is older than the view',
      { endpoint: stranger, connectionOpenedMs: 99_999 },
      'older_than_view',
    ],
    [
      'never listed, and the clocks do not tell which is older',
      { endpoint: stranger, connectionOpenedMs: 100_400, clockUncertaintyMs: 500 },
      'older_than_view',
    ],
    ['never listed, and the age is not known', { endpoint: stranger, connectionOpenedMs: undefined }, 'age_unknown'],
    ['left, after the grace, and the age is not known', { connectionOpenedMs: undefined }, 'age_unknown'],
  ])('%s', (_name, facts, reason) => {
    expect(judge(facts)).toMatchObject({ pin: 'unknown', reason, leftAtMs: undefined });
  });

  test('a source that answered exactly staleAfterMs ago is not stale yet', () => {
    expect(judge({ view: withView({ lastAnswerMs: 240_000 }) }).pin).toBe('stale');
  });
});

describe('current', () => {
  test('a listed endpoint, whatever the age of the connection', () => {
    expect(judge({ endpoint: listed })).toEqual({
      pin: 'current',
      reason: undefined,
      leftAtMs: undefined,
      source: 'dns',
    });
    expect(judge({ endpoint: listed, connectionOpenedMs: undefined }).pin).toBe('current');
    expect(judge({ endpoint: listed, connectionOpenedMs: 1 }).pin).toBe('current');
  });

  test('an Envoy-internal address counts by its inner IP', () => {
    expect(judge({ endpoint: tunnelled('10.0.0.12:8080') }).pin).toBe('current');
    expect(judge({ endpoint: tunnelled('10.0.0.12:8080'), connectionOpenedMs: undefined }).pin).toBe('current');
    expect(judge({ endpoint: tunnelled('10.0.0.11:8080') }).pin).toBe('stale');
  });

  test('a source that names ports means that port', () => {
    const withPorts = withView({
      listed: new Map([
        ['10.0.0.11:80', 0],
        ['[::1]:80', 0],
      ]),
      left: new Map(),
    });
    expect(judge({ view: withPorts, endpoint: ip('10.0.0.11', 80) }).pin).toBe('current');
    expect(judge({ view: withPorts, endpoint: ip('::1', 80) }).pin).toBe('current');
    expect(judge({ view: withPorts, endpoint: ip('10.0.0.11', 81) }).pin).toBe('unlisted');
  });
});

describe('judged after the fact', () => {
  test('an endpoint that left after the request had ended was current', () => {
    expect(judge({ requestStartMs: 190_000, nowMs: 195_000 })).toMatchObject({ pin: 'current', leftAtMs: undefined });
  });
});

describe('draining', () => {
  test.each<[string, Partial<PinFacts>]>([
    ['the request began before the endpoint left, and still runs long after the grace', { requestStartMs: 199_999 }],
    ['the request began at the moment of the leaving', { requestStartMs: 200_000 }],
    ['the request began inside the grace', { requestStartMs: 209_999 }],
    [
      'the clocks do not tell whether the request began inside the grace',
      { requestStartMs: 210_400, clockUncertaintyMs: 500 },
    ],
    [
      'the clocks do not tell whether the connection was opened by rights',
      { connectionOpenedMs: 210_400, clockUncertaintyMs: 500 },
    ],
    ['a TCP connection, inside the grace', { requestStartMs: undefined, nowMs: 209_999 }],
    [
      'the age is not known, but the request is inside the grace',
      { connectionOpenedMs: undefined, requestStartMs: 205_000 },
    ],
    [
      'without a grace, a request of the moment of the leaving',
      { requestStartMs: 200_000, view: withView({ graceMs: 0 }) },
    ],
  ])('%s', (_name, facts) => {
    expect(judge(facts)).toEqual({ pin: 'draining', reason: undefined, leftAtMs: 200_000, source: 'dns' });
  });

  test('a request start in the future is taken as now', () => {
    expect(judge({ requestStartMs: 900_000, nowMs: 205_000 }).pin).toBe('draining');
  });
});

describe('after the grace', () => {
  test('the grace ends to the millisecond', () => {
    expect(judge({ requestStartMs: 210_000 }).pin).toBe('stale');
  });

  test('a TCP connection is judged as of now', () => {
    expect(judge({ requestStartMs: undefined, nowMs: 210_000 }).pin).toBe('stale');
  });

  test('a connection of inside the grace was opened by rights, by an answer that still held: a stale pin, no old list', () => {
    expect(judge({ connectionOpenedMs: 200_000 }).pin).toBe('stale');
    expect(judge({ connectionOpenedMs: 209_999 }).pin).toBe('stale');
  });

  test('a connection of after the grace means that the list of the proxy is old', () => {
    expect(judge({ connectionOpenedMs: 210_000 })).toEqual({
      pin: 'stale_view',
      reason: undefined,
      leftAtMs: 200_000,
      source: 'dns',
    });
  });

  test('the last leaving counts where the source named the endpoint with and without its port', () => {
    const both = withView({
      left: new Map([
        ['10.0.0.11', 150_000],
        ['10.0.0.11:8080', 200_000],
      ]),
    });
    expect(judge({ view: both, connectionOpenedMs: 180_000 })).toMatchObject({ pin: 'stale', leftAtMs: 200_000 });
  });
});

test('never listed, under a view older than the connection, is unlisted', () => {
  expect(judge({ endpoint: stranger, connectionOpenedMs: 100_000 })).toEqual({
    pin: 'unlisted',
    reason: undefined,
    leftAtMs: undefined,
    source: 'dns',
  });
});
