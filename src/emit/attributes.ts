import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_REQUEST_METHOD_ORIGINAL,
  ATTR_HTTP_REQUEST_RESEND_COUNT,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_NETWORK_PEER_ADDRESS,
  ATTR_NETWORK_PEER_PORT,
  ATTR_NETWORK_PROTOCOL_NAME,
  ATTR_NETWORK_PROTOCOL_VERSION,
  ATTR_RPC_METHOD,
  ATTR_RPC_STATUS_CODE,
  ATTR_RPC_SYSTEM_NAME,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_FULL,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions';

/** What labels a metric. An attribute whose value is not known is left out, never empty. */
export const attribute = {
  cluster: 'sidelight.cluster',
  reporterKind: 'sidelight.reporter.kind',
  reporterWorkload: 'sidelight.reporter.workload',
  reporterNamespace: 'sidelight.reporter.namespace',
  outcome: 'sidelight.outcome',
  localResult: 'sidelight.local.result',
  hedged: 'sidelight.hedged',
  result: 'sidelight.result',
  cause: 'sidelight.cause',
  endpoint: 'sidelight.endpoint',
  pin: 'sidelight.pin',
  layer: 'sidelight.layer',
  source: 'sidelight.source',
  change: 'sidelight.change',
  profile: 'sidelight.profile',
  stream: 'sidelight.stream',
  limit: 'sidelight.limit',
  event: 'sidelight.event',
  how: 'sidelight.how',
  expected: 'sidelight.expected',
  reason: 'sidelight.reason',
  label: 'sidelight.label',
  signal: 'sidelight.signal',
} as const;
export type MetricAttribute = (typeof attribute)[keyof typeof attribute];

/** Labels of one series. */
export type Labels = Partial<Record<MetricAttribute, string>>;

/** Which spans carry an attribute: the exchange's, its attempts', or both. */
export type SpanPlace = 'exchange' | 'attempt' | 'both';

/** Every attribute of a span: where it is, and what it says. OpenTelemetry's own names where there is one. */
export const spanAttributes = {
  [ATTR_HTTP_REQUEST_METHOD]: { on: 'both', says: 'The method; `_OTHER` for one that HTTP does not know.' },
  [ATTR_HTTP_REQUEST_METHOD_ORIGINAL]: { on: 'both', says: 'The method as sent, of `_OTHER`.' },
  [ATTR_HTTP_REQUEST_RESEND_COUNT]: { on: 'attempt', says: 'How many attempts came before; not on the first.' },
  [ATTR_HTTP_RESPONSE_STATUS_CODE]: { on: 'both', says: 'The status; absent where no response head was seen.' },
  [ATTR_URL_FULL]: { on: 'attempt', says: 'What was asked for, without the query.' },
  [ATTR_URL_SCHEME]: { on: 'both', says: '`http` or `https`.' },
  [ATTR_URL_PATH]: { on: 'both', says: 'The path. The query is always cut off.' },
  [ATTR_SERVER_ADDRESS]: { on: 'both', says: 'The host of the authority that the client asked for.' },
  [ATTR_SERVER_PORT]: {
    on: 'both',
    says: 'Its port, if the authority names one; on the attempt else the port that the scheme has.',
  },
  [ATTR_NETWORK_PROTOCOL_NAME]: { on: 'exchange', says: '`http`.' },
  [ATTR_NETWORK_PROTOCOL_VERSION]: { on: 'exchange', says: "The client's: `1.1`, `2`, `3`." },
  [ATTR_NETWORK_PEER_ADDRESS]: { on: 'attempt', says: 'The IP, or path of a socket, that the bytes really went to.' },
  [ATTR_NETWORK_PEER_PORT]: { on: 'attempt', says: 'Its port.' },
  [ATTR_ERROR_TYPE]: { on: 'both', says: 'Of a failure: the status, the gRPC status name, or the cause.' },
  [ATTR_RPC_SYSTEM_NAME]: { on: 'both', says: '`grpc`, of gRPC.' },
  [ATTR_RPC_METHOD]: { on: 'both', says: '`package.Service/Method`, of gRPC.' },
  [ATTR_RPC_STATUS_CODE]: { on: 'both', says: 'The gRPC status by name, trailers included.' },
  [attribute.cluster]: { on: 'both', says: "Envoy's cluster." },
  'sidelight.cluster.host': { on: 'both', says: "The service's host name, of a cluster that Istio named after one." },
  'sidelight.cluster.subset': { on: 'both', says: 'The subset of its DestinationRule, of a cluster that is one.' },
  [attribute.endpoint]: {
    on: 'both',
    says: "Where the bytes went, in Envoy's spelling; on the exchange: of the delivered attempt, else the last.",
  },
  [attribute.profile]: { on: 'exchange', says: '`full`, `tag` or `observe`: what Sidelight could see.' },
  [attribute.reporterKind]: { on: 'exchange', says: 'Which kind of proxy saw it.' },
  'sidelight.reporter.pod': { on: 'exchange', says: 'Its pod.' },
  'sidelight.reporter.node_id': { on: 'exchange', says: "Its node id, as Envoy's bootstrap has it." },
  'sidelight.reporter.envoy_version': { on: 'exchange', says: "Its Envoy's version." },
  'sidelight.route': { on: 'exchange', says: "The name of Envoy's route." },
  [attribute.outcome]: { on: 'exchange', says: 'What became of the exchange.' },
  'sidelight.unknown.reason': { on: 'exchange', says: 'Of outcome `unknown`: why.' },
  [attribute.localResult]: { on: 'exchange', says: 'Of outcome `local`: `success`, `client_error`, `server_error`.' },
  'sidelight.phase': { on: 'exchange', says: 'Of outcome `aborted`: `before_headers` or `in_body`.' },
  'sidelight.failed_before_abort': {
    on: 'exchange',
    says: 'Of outcome `aborted`: true if an attempt had failed by then.',
  },
  'sidelight.failed.phase': { on: 'exchange', says: 'Of a failure: where the response broke.' },
  'sidelight.retry.denied': { on: 'exchange', says: 'Why a failure was not retried: `limit`, `overflow`, `none`.' },
  [attribute.hedged]: { on: 'exchange', says: 'True if a hedge won after a per-try timeout; left out of the rates.' },
  'sidelight.attempts': {
    on: 'exchange',
    says: 'How many attempts reached a peer; in profile `tag`: as Envoy counted.',
  },
  'sidelight.retried': { on: 'exchange', says: 'True if there was more than one attempt.' },
  'sidelight.redirects': { on: 'exchange', says: 'Internal redirects that were followed; absent for none.' },
  'sidelight.masked.latency_ms': {
    on: 'exchange',
    says: "Of outcome `masked`: from the first attempt's start to the winner's.",
  },
  'sidelight.code_details': { on: 'exchange', says: "Envoy's response code details." },
  'sidelight.request_id': { on: 'exchange', says: 'The `x-request-id`. Many requests may share one.' },
  'sidelight.pin.reason': { on: 'exchange', says: 'Of pin `unknown`: why.' },
  'sidelight.pin.left_ago_ms': {
    on: 'exchange',
    says: 'How long before the end of the exchange the endpoint had left.',
  },
  [attribute.pin]: { on: 'exchange', says: 'Whether the endpoint was still listed.' },
  'sidelight.kept_reason': { on: 'exchange', says: 'Why the trace was kept although its parent was not sampled.' },
  'sidelight.chain.amplification': {
    on: 'exchange',
    says: 'Of several proxies in a row, from this one inwards: how many sends a request here cost the last one, as far as seen here; absent where that is not known.',
  },
  'sidelight.chain.factors': {
    on: 'exchange',
    says: 'Of the same: attempts ÷ exchanges of each layer, the outermost first, such as `3 × 3 × 3`.',
  },
  'sidelight.chain.layers': {
    on: 'exchange',
    says: 'Of the same: the layers, such as `shop (sidecar_outbound) × cart (sidecar_inbound)`.',
  },
  'sidelight.chain.origin': {
    on: 'exchange',
    says: 'Of the same, if it failed: the innermost layer that failed whenever the layers before it did; they passed it on.',
  },
  'sidelight.attempt': { on: 'attempt', says: 'Its number, from 1, by start.' },
  'sidelight.request.sent': {
    on: 'attempt',
    says: 'Of a failed attempt: false if not a byte of the request was sent, so that trying again was safe whatever the method; absent behind an internal listener.',
  },
  [attribute.result]: { on: 'attempt', says: '`ok`, `failed`, `superseded`, `client_cancelled`.' },
  [attribute.cause]: { on: 'both', says: 'Why it failed; on the exchange: the first failed attempt.' },
  'sidelight.flags': { on: 'both', says: "Envoy's response flags, with commas, as `%RESPONSE_FLAGS%` prints them." },
  'sidelight.transport_failure': { on: 'attempt', says: "Envoy's transport failure reason." },
  'sidelight.connection.id': { on: 'both', says: 'The upstream connection, unique within one Envoy.' },
  'sidelight.connection.age_ms': { on: 'both', says: 'How old it was when the request was sent.' },
} as const satisfies Record<string, { on: SpanPlace; says: string }>;
type SpanAttribute = keyof typeof spanAttributes;

/** Which of a pin's two spans carry an attribute: the one from the departure on, the one of its end, or both. */
export type PinSpanPlace = 'stale pin' | 'stale pin cleared' | 'both';

/** Every attribute of a pin's spans. */
export const pinSpanAttributes = {
  [attribute.cluster]: { on: 'both', says: "Envoy's cluster." },
  [attribute.endpoint]: { on: 'both', says: "The endpoint that left, in Envoy's spelling." },
  [attribute.layer]: { on: 'both', says: '`http` or `tcp`.' },
  'sidelight.connection.id': { on: 'both', says: 'The upstream connection, unique within one Envoy.' },
  [attribute.reporterKind]: { on: 'both', says: 'Which kind of proxy holds it.' },
  'sidelight.reporter.pod': { on: 'both', says: 'Its pod.' },
  'sidelight.reporter.node_id': { on: 'both', says: "Its node id, as Envoy's bootstrap has it." },
  'sidelight.reporter.envoy_version': { on: 'both', says: "Its Envoy's version." },
  [attribute.pin]: { on: 'both', says: '`stale` or `stale_view`; on the end: as it was last.' },
  [attribute.source]: { on: 'both', says: 'Which source no longer lists the endpoint: `file`, `dns`, `envoy`.' },
  'sidelight.endpoint.left_at': { on: 'both', says: 'When the endpoint left; ISO 8601, like all times here.' },
  'sidelight.connection.opened_at': { on: 'both', says: 'When the connection was opened.' },
  'sidelight.connection.last_used_at': { on: 'both', says: 'Its last request or byte by then.' },
  'sidelight.connection.requests': { on: 'both', says: 'Requests on it by then, since it was opened; not of `tcp`.' },
  'sidelight.connection.bytes': { on: 'both', says: 'Bytes both ways by then, since it was opened, as far as seen.' },
  [attribute.how]: { on: 'stale pin cleared', says: 'How the pin was over.' },
  'sidelight.closed_by': {
    on: 'stale pin cleared',
    says: 'Who closed the connection: `client`, `server`, `envoy`; absent where Envoy did not say.',
  },
} as const satisfies Record<string, { on: PinSpanPlace; says: string }>;

/** Attributes of one span. `undefined` is left out. */
export type SpanFacts = Partial<
  Record<SpanAttribute | keyof typeof pinSpanAttributes, string | number | boolean | undefined>
>;
