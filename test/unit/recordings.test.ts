import { describe, expect, it } from 'vitest';
import { wasSent } from '../../src/model/exchange.ts';
import type { AttemptVerdict, JudgedExchange } from '../../src/model/verdict.ts';
import { expectedHttp, expectedTcp, spell } from '../support/expected-verdicts.ts';
import { judgeRecording, recordedCases } from '../support/recordings.ts';

/** Cases of more than one exchange, each with a test of its own below. */
const several = [
  'direct-response',
  'mirror-of-retried-request',
  'ok-reused-connection',
  'pool-overflow-max-requests',
  'shared-request-id',
];

describe('what a real Envoy 1.40 logged is judged', () => {
  it.each(Object.entries(expectedHttp))('%s', (name, [outcome, attempts]) => {
    const { judged } = judgeRecording(name);
    expect(judged.map(inWords)).toEqual([outcome]);
    expect(judged[0]?.verdict.attempts.map(causeOrResult)).toEqual(attempts);
    expect(judged[0]?.exchange.attemptCountMismatch).toBe(name === 'ejected-then-no-healthy-host');
  });

  it.each(Object.entries(expectedTcp))('%s', (name, result) => {
    expect(judgeRecording(name).tcp.map(causeOrResult)).toEqual([result]);
  });

  it.each(['1.40', '1.37'])(
    'and Envoy %s gives a time of sending to just those attempts that had a connection',
    (version) => {
      const attempts = recordedCases(version)
        .filter((name) => name in expectedHttp || several.includes(name))
        .flatMap((name) => judgeRecording(name, version).judged)
        .flatMap(({ exchange }) => exchange.attempts);
      expect(attempts.filter((attempt) => wasSent(attempt) === false).length).toBeGreaterThan(0);
      expect(attempts.map(wasSent)).toEqual(attempts.map(({ connectionId }) => connectionId !== undefined));
    },
  );

  it('direct-response: local, whatever the code', () => {
    expect(judgeRecording('direct-response').judged.map(inWords)).toEqual([
      'local success',
      'local client_error',
      'local server_error',
    ]);
  });

  it('ok-reused-connection: three exchanges over one connection that grows older', () => {
    const { judged } = judgeRecording('ok-reused-connection');
    const attempts = judged.flatMap(({ exchange }) => exchange.attempts);
    expect(judged.map(inWords)).toEqual(['ok', 'ok', 'ok']);
    expect(new Set(attempts.map((attempt) => attempt.connectionId)).size).toBe(1);
    const ages = attempts.map((attempt) => attempt.connectionAgeMs ?? 0);
    expect(ages).toEqual(ages.toSorted((a, b) => a - b));
  });

  it('pool-overflow-max-requests: one ok, and one that reached nobody although Envoy names a host', () => {
    const { judged } = judgeRecording('pool-overflow-max-requests');
    expect(judged.map(inWords).toSorted()).toEqual(['local server_error', 'ok']);
  });

  it('mirror-of-retried-request: the mirrors are no attempts', () => {
    const { judged, counts } = judgeRecording('mirror-of-retried-request');
    expect(judged.map(inWords)).toEqual(['masked status_5xx', 'masked status_5xx']);
    expect(judged.map(({ exchange }) => exchange.attempts.length)).toEqual([2, 2]);
    expect(counts).toEqual({ mirror: 2 });
  });

  it('shared-request-id: twenty exchanges, five of them retried, in spite of one x-request-id and a spoofed key', () => {
    const { judged } = judgeRecording('shared-request-id');
    expect(judged).toHaveLength(20);
    expect(
      judged.filter(({ verdict }) => verdict.outcome === 'masked').map(({ exchange }) => exchange.attempts.length),
    ).toEqual([2, 2, 2, 2, 2]);
    expect(judged.filter(({ verdict }) => verdict.outcome === 'ok')).toHaveLength(15);
    expect(new Set(judged.map(({ exchange }) => exchange.requestId)).size).toBe(1);
  });

  it('leaves no recording out', () => {
    expect([...Object.keys(expectedHttp), ...Object.keys(expectedTcp), ...several].toSorted()).toEqual(
      recordedCases('1.40').toSorted(),
    );
  });
});

describe('what Envoy 1.37 logged, which names no client on an attempt, is judged alike', () => {
  it.each(recordedCases('1.37').filter((name) => name in expectedHttp))('%s', (name) => {
    const { judged } = judgeRecording(name, '1.37');
    expect(judged.map(inWords)).toEqual([expectedHttp[name]?.[0]]);
    expect(judged[0]?.verdict.attempts.map(causeOrResult)).toEqual(expectedHttp[name]?.[1]);
  });

  it('mirror-of-retried-request: the mirrors are no attempts', () => {
    const { judged } = judgeRecording('mirror-of-retried-request', '1.37');
    expect(judged.map(({ exchange }) => exchange.attempts.length)).toEqual([2, 2]);
    expect(judged.map(inWords)).toEqual(['masked status_5xx', 'masked status_5xx']);
  });
});

function inWords({ verdict }: JudgedExchange): string {
  return spell(verdict);
}

function causeOrResult({ cause, result }: AttemptVerdict): string {
  return cause ?? result;
}
