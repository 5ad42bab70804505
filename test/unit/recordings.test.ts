import { describe, expect, it } from 'vitest';
import type { AttemptVerdict, JudgedExchange } from '../../src/model/verdict.ts';
import { judgeRecording, recordedCases } from '../support/recordings.ts';

/** Case → outcome (and what belongs to it), then each attempt's result or cause. */
const http: Record<string, [outcome: string, attempts: string[]]> = {
  'client-abort-http1-after-failed-attempt': [
    'aborted before_headers after a failure',
    ['status_5xx', 'client_cancelled'],
  ],
  'client-abort-http1-before-headers': ['aborted before_headers', ['client_cancelled']],
  'client-abort-http1-in-body': ['aborted in_body', ['client_cancelled']],
  'client-abort-http2-after-failed-attempt': [
    'aborted before_headers after a failure',
    ['status_5xx', 'client_cancelled'],
  ],
  'client-abort-http2-before-headers': ['aborted before_headers', ['client_cancelled']],
  'client-abort-http2-in-body': ['aborted in_body', ['client_cancelled']],
  'connect-timeout-not-retried': ['failed before_headers none', ['connect_timeout']],
  'connect-timeout-retried': ['masked connect_timeout', ['connect_timeout', 'ok']],
  'die-in-body': ['failed in_body none', ['protocol_error']],
  'die-in-body-after-retry': ['exhausted in_body none', ['status_5xx', 'protocol_error']],
  'die-in-body-http2': ['failed in_body none', ['reset']],
  'ejected-then-no-healthy-host': ['failed before_headers none', ['status_5xx']],
  'forbidden-by-earlier-filter': ['local client_error', []],
  'global-timeout': ['failed before_headers none', ['timeout']],
  'global-timeout-after-503': ['exhausted before_headers none', ['status_5xx', 'timeout']],
  'global-timeout-in-body': ['failed in_body none', ['timeout']],
  'grpc-client-abort-before-headers': ['aborted before_headers', ['client_cancelled']],
  'grpc-client-abort-in-body': ['aborted in_body', ['client_cancelled']],
  'grpc-failure-in-trailers': ['failed before_headers none', ['grpc_status']],
  'grpc-missing-status': ['failed before_headers none', ['grpc_status']],
  'grpc-not-found': ['ok', ['ok']],
  'grpc-ok': ['ok', ['ok']],
  'grpc-unavailable-exhausted': ['exhausted before_headers limit', ['grpc_status', 'grpc_status', 'grpc_status']],
  'grpc-unavailable-retried': ['masked grpc_status', ['grpc_status', 'ok']],
  'hedge-first-wins': ['masked per_try_timeout hedged', ['ok', 'per_try_timeout', 'superseded']],
  'hedge-second-wins': ['masked per_try_timeout hedged', ['per_try_timeout', 'ok']],
  'hedge-third-wins': ['masked per_try_timeout hedged', ['per_try_timeout', 'per_try_timeout', 'ok']],
  'internal-redirect': ['ok', ['ok', 'ok']],
  'internal-redirect-with-retries': ['masked status_5xx', ['status_5xx', 'ok', 'status_5xx', 'ok']],
  'max-stream-duration': ['failed before_headers none', ['timeout']],
  'mirror-on-first-connection': ['ok', ['ok']],
  'mirror-refused': ['ok', ['ok']],
  'no-healthy-host': ['local server_error', []],
  'no-route': ['local client_error', []],
  'per-try-timeout-exhausted': [
    'exhausted before_headers limit',
    ['per_try_timeout', 'per_try_timeout', 'per_try_timeout'],
  ],
  'per-try-timeout-retried': ['masked per_try_timeout', ['per_try_timeout', 'ok']],
  'pool-overflow-max-pending': ['local server_error', []],
  'protocol-error': ['failed before_headers none', ['protocol_error']],
  'redirect-by-route': ['local success', []],
  'refused-exhausted': ['exhausted before_headers limit', ['connect_failure', 'connect_failure', 'connect_failure']],
  'refused-not-retried': ['failed before_headers none', ['connect_failure']],
  'refused-retried': ['masked connect_failure', ['connect_failure', 'ok']],
  'refused-stream-retried': ['masked reset', ['reset', 'ok']],
  'reset-before-headers-exhausted': [
    'exhausted before_headers limit',
    ['connection_termination', 'connection_termination', 'connection_termination'],
  ],
  'reset-before-headers-http2': ['failed before_headers none', ['reset']],
  'reset-before-headers-not-retried': ['failed before_headers none', ['connection_termination']],
  'reset-before-headers-retried': ['masked connection_termination', ['connection_termination', 'ok']],
  'retriable-status-retried': ['masked retriable_status', ['retriable_status', 'ok']],
  'retry-overflow': ['failed before_headers overflow', ['status_5xx']],
  'status-500': ['failed before_headers none', ['status_5xx']],
  'status-503-exhausted': ['exhausted before_headers limit', ['status_5xx', 'status_5xx', 'status_5xx']],
  'status-503-not-retried': ['failed before_headers none', ['status_5xx']],
  'status-503-retried': ['masked status_5xx', ['status_5xx', 'ok']],
  'stream-idle-timeout': ['failed before_headers none', ['timeout']],
  'tls-failure': ['failed before_headers none', ['tls_failure']],
  'unauthorized-by-earlier-filter': ['local client_error', []],
};

const tcp: Record<string, string> = {
  'tcp-closed-by-upstream': 'ok',
  'tcp-connect-timeout': 'connect_timeout',
  'tcp-connection': 'ok',
  'tcp-no-host': 'unknown',
  'tcp-refused': 'connect_failure',
};

/** Cases of more than one exchange, each with a test of its own below. */
const several = [
  'direct-response',
  'mirror-of-retried-request',
  'ok-reused-connection',
  'pool-overflow-max-requests',
  'shared-request-id',
];

describe('what a real Envoy 1.40 logged is judged', () => {
  it.each(Object.entries(http))('%s', (name, [outcome, attempts]) => {
    const { judged } = judgeRecording(name);
    expect(judged.map(inWords)).toEqual([outcome]);
    expect(judged[0]?.verdict.attempts.map(causeOrResult)).toEqual(attempts);
    expect(judged[0]?.exchange.attemptCountMismatch).toBe(name === 'ejected-then-no-healthy-host');
  });

  it.each(Object.entries(tcp))('%s', (name, result) => {
    expect(judgeRecording(name).tcp.map(causeOrResult)).toEqual([result]);
  });

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
    expect([...Object.keys(http), ...Object.keys(tcp), ...several].toSorted()).toEqual(recordedCases.toSorted());
  });
});

function inWords({ verdict }: JudgedExchange): string {
  const { outcome, phase, failedBeforeAbort, failedPhase, retryDenied, localResult, hedged, cause } = verdict;
  const failedCause = outcome === 'masked' ? cause : undefined;
  const abort = failedBeforeAbort ? 'after a failure' : undefined;
  return [outcome, phase, abort, failedPhase, retryDenied, localResult, failedCause, hedged ? 'hedged' : undefined]
    .filter((word) => word !== undefined)
    .join(' ');
}

function causeOrResult({ cause, result }: AttemptVerdict): string {
  return cause ?? result;
}
