/** What the shipped configs say, as far as an attached one is compared with it; test/unit/doctor-shipped.test.ts. */

/** The number at the end of `log_name`. */
export const shippedVersion = 2;

/** Tags of the log besides `key`. */
export const shippedTags = [
  'cluster',
  'connection_id',
  'connection_age_us',
  'traceparent',
  'trace_id',
  'grpc_status',
  'content_type',
  'attempt_count',
  'duration_ms',
  'upstream_protocol',
  'response_connection',
] as const;

/** What `response_attributes` must ask for, so that each tag has its value. */
export const shippedAttributes = [
  'xds.cluster_name',
  'xds.node.id',
  'upstream.address',
  'upstream.request_attempt_count',
  'response.code',
  'response.flags',
  "request.headers['x-sidelight-key']",
] as const;

export const internalHeaders = [
  'x-sidelight-internal-connection-id',
  'x-sidelight-internal-connection-age-us',
] as const;
