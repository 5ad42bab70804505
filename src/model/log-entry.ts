import type { ClosedBy } from './closed-by.ts';
import type { Endpoint } from './endpoint.ts';
import type { ResponseFlag } from './response-flag.ts';

/** Envoy's `AccessLogType`, the ones that Sidelight reads. `not_set` also stands for types it does not know. */
export const entryTypes = [
  'not_set',
  'downstream_start',
  'downstream_periodic',
  'downstream_end',
  'upstream_pool_ready',
  'upstream_periodic',
  'upstream_end',
  'tcp_upstream_connected',
  'tcp_periodic',
  'tcp_connection_end',
] as const;
export type EntryType = (typeof entryTypes)[number];

/**
 * One access log entry, HTTP or TCP. Times are epoch milliseconds with a fraction (Envoy's clock), durations
 * milliseconds with a fraction; `undefined` means that Envoy did not say.
 */
export interface LogEntry {
  layer: 'http' | 'tcp';
  type: EntryType;
  /** `x-sidelight-key` for HTTP, Envoy's `stream_id` for TCP: joins what belongs to one exchange, within one log stream. */
  key: string | undefined;
  startMs: number | undefined;
  durationMs: number | undefined;
  /** Since `startMs`: the request's first byte sent upstream; the response's first byte received. */
  firstUpstreamTxMs: number | undefined;
  firstUpstreamRxMs: number | undefined;
  cluster: string | undefined;
  route: string | undefined;
  upstream: Endpoint | undefined;
  /** The client. Absent on a mirrored (shadow) request, and on every attempt of Envoy 1.37. */
  downstreamRemote: Endpoint | undefined;
  flags: readonly ResponseFlag[];
  /** HTTP status, 100-599; absent where no response head was seen (Envoy writes 0). */
  code: number | undefined;
  codeDetails: string | undefined;
  transportFailure: string | undefined;
  /**
   * The upstream connection that the entry names was closed with it. False is no promise that it stays open: Envoy
   * says nothing when it closes an idle one.
   */
  closesConnection: boolean;
  /** Of a closed one; absent where Envoy does not say, as at the orderly end of a TCP connection. */
  closedBy: ClosedBy | undefined;
  /** Envoy's own count on the downstream entry; absent on upstream entries (Envoy writes 0). */
  attemptCount: number | undefined;
  bytesSent: number;
  bytesReceived: number;
  method: string | undefined;
  scheme: string | undefined;
  authority: string | undefined;
  path: string | undefined;
  protocol: string | undefined;
  requestId: string | undefined;
  tags: EntryTags;
}

/** What our `custom_tags` ask for. An empty value leaves the tag out. Needs Envoy 1.37. */
export interface EntryTags {
  /** Upstream connection id, unique within one Envoy; absent where no connection was had (Envoy writes 0 or `-`). */
  connectionId: string | undefined;
  /** Upstream connection established → this request sent. */
  connectionAgeMs: number | undefined;
  /** The request's `traceparent` as it went upstream. */
  traceparent: string | undefined;
  /** Envoy's own span, downstream log only; present only with Envoy's tracer on. */
  envoyTraceId: string | undefined;
  envoySpanId: string | undefined;
  /** gRPC status number, trailers included. */
  grpcStatus: number | undefined;
  /** The request's `content-type` is gRPC's. */
  isGrpc: boolean;
  /** `x-envoy-attempt-count` as sent upstream: compared and counted, never believed. */
  attemptCountHeader: number | undefined;
  /** From the tagger's dynamic metadata in `inject` mode, downstream log only. */
  injected: InjectedContext | undefined;
}

/** The ids that the tagger put into `traceparent`. Absent (fail open) means that no such span may be claimed. */
export interface InjectedContext {
  traceId: string;
  spanId: string;
  /** The caller's span; absent where the caller sent no valid `traceparent`. */
  parentSpanId: string | undefined;
  sampled: boolean;
}
