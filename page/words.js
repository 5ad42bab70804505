/*
 * What the words of Sidelight mean, in a sentence each; docs/reference/verdicts.md says more. test/unit/page-words.test.ts
 * holds them to the closed sets of src/model.
 */

/** Of an exchange. */
export const outcomeWords = {
  ok: 'The client saw success, and so did the first attempt.',
  masked: 'The client saw success, but an attempt before it had failed: a retry hid it.',
  exhausted: 'It failed although it was tried more than once.',
  failed: 'It failed, and was tried once.',
  aborted: 'The client left first.',
  local: 'Envoy answered by itself: no attempt reached an upstream.',
  unknown: 'The facts are not whole, so nothing is claimed.',
};

/** A sign for each, so that colour is never alone. */
export const outcomeSigns = {
  ok: '✓',
  masked: '◐',
  exhausted: '✕',
  failed: '✕',
  aborted: '↩',
  local: '■',
  unknown: '?',
};

/** Why an attempt failed. */
export const causeWords = {
  connect_failure: 'the connection was refused',
  connect_timeout: 'no connection within the connect timeout',
  reset: 'the upstream reset it',
  refused_stream: 'the upstream refused the stream',
  connection_termination: 'the connection ended under it',
  per_try_timeout: 'the per-try timeout was over',
  timeout: 'the request timeout was over',
  overflow: 'a circuit breaker was open',
  protocol_error: 'what the upstream sent was not HTTP as agreed',
  tls_failure: 'TLS could not be agreed on',
  status_5xx: 'the upstream answered with a 5xx',
  retriable_status: 'the upstream answered with a status that is retried',
  grpc_status: 'the upstream answered with a failing gRPC status',
  unknown: 'Envoy does not say',
};

/** Whether an endpoint is still listed. */
export const pinWords = {
  current: 'its endpoint is listed',
  draining: 'its endpoint left a moment ago',
  stale: 'opened before its endpoint left, and still used: a stale pin',
  stale_view: 'opened after its endpoint left: the proxy’s own list is old',
  unlisted: 'its endpoint was never listed',
  unknown: 'no source can tell whether its endpoint is listed',
};

/** Why that is not known. */
export const unknownPinWords = {
  no_source: 'no source covers the cluster: name a host or a service for it in clusters[], or a file in discovery.file',
  no_answer_yet: 'the source has not answered yet',
  source_stale: 'the source has not answered for too long',
  older_than_view: 'the connection is older than what Sidelight has seen of the cluster',
  no_address: 'the endpoint has no address that a source could list',
  other_resolver: 'DNS is asked elsewhere than the proxy asks: see discovery.dns.sameResolverAsProxy',
  age_unknown: 'Envoy did not say how old the connection is',
  owner_unclear: 'the address passed to another endpoint at about that time',
  tunnelled: 'it is behind a tunnel (HBONE), of which nobody here sees the other end',
};

/** Why a connection stays with an endpoint that left. */
export const pinReasonWords = {
  host_set_change: 'Envoy was told to keep connections when hosts change',
  logical_dns_pool: 'a LOGICAL_DNS pool keeps its connections',
  pool_kept: 'the connection pool keeps its connections',
  tcp_session: 'the client keeps its TCP connection',
  long_request: 'a request that began before is still under way',
  health_check_hold: 'Envoy keeps a removed host until it fails its health check',
  old_proxy_list: 'the proxy still lists the endpoint',
};

/** How a pin was over. */
export const clearedWords = {
  closed: 'the connection was closed',
  gone: 'Envoy’s counters show that it is gone',
  quiet: 'not heard of any more',
  relisted: 'the endpoint is listed again',
  moved: 'its log stream ended; another replica may see it',
  evicted: 'forgotten for want of room',
};

/** What may be said of an endpoint that is to be shut down: the word in big letters, a sign, a sentence. */
export const drainWords = {
  drained: ['Drained', '✓', 'Nobody used it for long enough, and no connection that was seen can be open.'],
  may_be_open: ['Quiet', '◐', 'Nobody uses it, but idle connections may still be open.'],
  blind: ['Not known', '?', 'Something hides the truth.'],
  in_use: ['In use', '●', 'Somebody uses it, or did a moment ago.'],
  still_listed: ['Still listed', '▲', 'A source or a proxy still lists it somewhere.'],
};

/** Envoy’s response flags. */
export const flagWords = {
  LH: 'the local service failed its health check',
  UH: 'no healthy upstream',
  UT: 'the upstream took longer than the request timeout',
  LR: 'reset locally',
  UR: 'the upstream reset it',
  UF: 'the connection to the upstream failed',
  UC: 'the upstream connection ended',
  UO: 'a circuit breaker of the cluster was open',
  NR: 'no route fits the request',
  DI: 'delayed by fault injection',
  FI: 'aborted by fault injection',
  RL: 'refused by a rate limit',
  UAEX: 'refused by external authorization',
  RLSE: 'the rate limit service failed',
  DC: 'the client closed its connection',
  URX: 'the limit of retries or connect attempts was reached',
  SI: 'the stream was idle for too long',
  IH: 'a header that must be strict was not valid',
  DPE: 'the client broke the protocol',
  UMSDR: 'the upstream took longer than the longest stream duration',
  RFCF: 'answered from the cache',
  NFCF: 'not in the cache, though only the cache was asked',
  DT: 'the request, or its connection, ran for too long',
  UPE: 'the upstream broke the protocol',
  NC: 'the cluster of the route is not there',
  OM: 'the overload manager ended it',
  DF: 'the name of the upstream could not be resolved',
  DO: 'dropped, as the load report says',
  DR: 'the client reset it',
  UDO: 'dropped by an unconditional drop overload',
};

/** A cause or reason as words: `connect_timeout` is `connect timeout`.
 * @param {string} word */
export function spaced(word) {
  return word.replaceAll('_', ' ');
}
