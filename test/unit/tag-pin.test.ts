import { expect, it } from 'vitest';
import { judgeTagged } from '../../src/flow/tag-pin.ts';
import type { ClusterView } from '../../src/model/view.ts';
import { endpoint } from '../support/entries.ts';

const second = 1000;
const nowMs = 1000 * second;

/** 127.0.0.11 left a minute ago; the grace is 10 s. */
const leftAtMs = nowMs - 60 * second;
const view: ClusterView = {
  cluster: 'app',
  source: 'dns',
  subject: 'app.test',
  firstAnswerMs: 0,
  lastAnswerMs: nowMs,
  staleAfterMs: 60 * second,
  graceMs: 10 * second,
  sameAsProxy: true,
  listed: new Map([['127.0.0.12', leftAtMs]]),
  left: new Map([['127.0.0.11', leftAtMs]]),
  changes: { added: 1, removed: 1 },
  lastError: undefined,
};

function pin(connectionAgeMs: number | undefined, requestStartMs: number | undefined, ip = '127.0.0.11') {
  return judgeTagged({ endpoint: endpoint(`${ip}:8080`), connectionAgeMs, requestStartMs }, view, nowMs).pin;
}

it('is judged by when the request began and how old the connection was then', () => {
  expect(pin(90 * second, nowMs - 5, '127.0.0.12')).toBe('current');
  expect(pin(90 * second, nowMs - 5)).toBe('stale');
  expect(pin(30 * second, nowMs - 5)).toBe('stale_view');
  expect(pin(undefined, nowMs - 5)).toBe('unknown');
  expect(pin(90 * second, undefined)).toBe('stale');
});

it('counts the age back from the request, not from an answer that took long', () => {
  expect(pin(30 * second, nowMs - 40 * second)).toBe('stale');
  expect(pin(5 * second, nowMs - 40 * second)).toBe('stale_view');
});

it("is at most draining where Envoy's clock is an hour behind, and right where it is ahead", () => {
  expect(pin(90 * second, nowMs - 3600 * second)).toBe('draining');
  expect(pin(90 * second, nowMs + 3600 * second)).toBe('stale');
});

it('leaves a second for what lies between', () => {
  expect(pin(90 * second, leftAtMs + 10.5 * second)).toBe('draining');
  expect(pin(90 * second, leftAtMs + 11 * second)).toBe('stale');
});
