/** Case → outcome (and what belongs to it), then each attempt's result or cause. */
export const expectedHttp: Record<string, [outcome: string, attempts: string[]]> = {
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
  'connection-close': ['ok', ['ok']],
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
  'grpc-global-timeout': ['failed before_headers none', ['timeout']],
  'grpc-missing-status': ['failed before_headers none', ['grpc_status']],
  'grpc-no-healthy-host': ['local server_error', []],
  'grpc-not-found': ['ok', ['ok']],
  'grpc-ok': ['ok', ['ok']],
  'grpc-refused': ['exhausted before_headers limit', ['connect_failure', 'connect_failure', 'connect_failure']],
  'grpc-unavailable-exhausted': ['exhausted before_headers limit', ['grpc_status', 'grpc_status', 'grpc_status']],
  'grpc-unavailable-retried': ['masked grpc_status', ['grpc_status', 'ok']],
  'grpc-web-failure-in-trailers': ['failed before_headers none', ['grpc_status']],
  'grpc-web-ok': ['ok', ['ok']],
  'grpc-web-unavailable-retried': ['masked grpc_status', ['grpc_status', 'ok']],
  'hedge-first-wins': ['masked per_try_timeout hedged', ['ok', 'per_try_timeout', 'superseded']],
  'hedge-second-wins': ['masked per_try_timeout hedged', ['per_try_timeout', 'ok']],
  'hedge-third-wins': ['masked per_try_timeout hedged', ['per_try_timeout', 'per_try_timeout', 'ok']],
  'internal-redirect': ['ok', ['ok', 'ok']],
  'internal-redirect-with-retries': ['masked status_5xx', ['status_5xx', 'ok', 'status_5xx', 'ok']],
  'long-request-http1': ['ok', ['ok']],
  'long-request-http2': ['ok', ['ok']],
  'long-request-silent': ['ok', ['ok']],
  'max-connection-duration': ['ok', ['ok']],
  'max-stream-duration': ['failed before_headers none', ['timeout']],
  'max-stream-duration-of-attempt': ['failed before_headers none', ['timeout']],
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
  'refused-stream-not-retried': ['failed before_headers none', ['refused_stream']],
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
  'websocket-ended-by-client': ['ok', ['ok']],
  'websocket-ended-by-upstream': ['ok', ['ok']],
  'websocket-idle': ['failed in_body none', ['timeout']],
};

/** Case → the connection's result, or its cause. */
export const expectedTcp: Record<string, string> = {
  'tcp-closed-by-upstream': 'ok',
  'tcp-connect-timeout': 'connect_timeout',
  'tcp-connection': 'ok',
  'tcp-idle-timeout': 'ok',
  'tcp-max-duration': 'ok',
  'tcp-no-host': 'unknown',
  'tcp-refused': 'connect_failure',
  'tcp-reset-by-client': 'ok',
  'tcp-reset-by-upstream': 'reset',
};

/** Facts of a verdict as the tables spell them, in this order; what is absent is left out. */
export function spell(parts: {
  outcome: unknown;
  phase: unknown;
  failedBeforeAbort: unknown;
  failedPhase: unknown;
  retryDenied: unknown;
  localResult: unknown;
  cause: unknown;
  hedged: unknown;
}): string {
  const { outcome, phase, failedBeforeAbort, failedPhase, retryDenied, localResult, cause, hedged } = parts;
  const abort = failedBeforeAbort === true ? 'after a failure' : undefined;
  const masked = outcome === 'masked' ? cause : undefined;
  const words = [outcome, phase, abort, failedPhase, retryDenied, localResult, masked, hedged === true && 'hedged'];
  return words.filter((word) => typeof word === 'string').join(' ');
}
