import type { Advice } from './advice.ts';
import type { Reporter } from './reporter.ts';
import type { Pin, PinUnknownReason } from './verdict.ts';
import type { SourceKind } from './view.ts';

/*
 * What `/api/v1/endpoints` answers, and `sidelight drained` reads. Times are epoch milliseconds on the clock of the
 * replica that answers; what is not known is absent.
 */

/** `unlisted`: used, but never listed. `unknown`: no source can tell, with the reason. */
export type EndpointState = 'listed' | 'left' | 'unlisted' | 'unknown';

/**
 * How well a connection is known to be there.
 * - `open`: TCP and heard of lately, or a request is under way on it.
 * - `idle`: HTTP, used lately, no request under way: most likely it is in the pool.
 * - `unseen`: not heard of for `pins.quietMs`, or its log stream ended. Envoy says nothing when an idle connection closes,
 *   so it may be open until its idle timeout is over.
 */
export type HolderState = 'open' | 'idle' | 'unseen';

/** A connection that was last seen at an endpoint and is not known to be closed. */
export interface Holder {
  reporter: Reporter;
  layer: 'http' | 'tcp';
  connectionId: string;
  state: HolderState;
  pin: Pin;
  reason: PinUnknownReason | undefined;
  openedMs: number;
  /** Its last request, or its last bytes. */
  lastUsedMs: number;
  /** Until when it can be open if nobody uses it: when it was last heard of + its idle timeout. Absent: without limit. */
  mayBeOpenUntilMs: number | undefined;
  requests: number;
  /** Both ways. */
  bytes: number;
  /** Its reporter has a log stream to this replica now. */
  reporterConnected: boolean;
  advice: Advice | undefined;
}

/** What flowed in `[atMs, atMs + bucketMs)`. */
export interface DrainPoint {
  atMs: number;
  requests: number;
  bytes: number;
  /** Connections that were used then. */
  connections: number;
}

/** What one reporter still sent. */
export interface DrainReporter {
  reporter: Reporter;
  requests: number;
  bytes: number;
  lastUsedMs: number;
  /** Its own curve may be coarser. */
  bucketMs: number;
  points: readonly DrainPoint[];
}

/** What went to an endpoint from the moment it left. */
export interface DrainCurve {
  requests: number;
  bytes: number;
  /** The last byte or request that went there after it left; absent: none did. */
  lastUsedMs: number | undefined;
  /** Doubles when the curve would become too long. */
  bucketMs: number;
  /** All reporters together, oldest first; only buckets in which something flowed. */
  points: readonly DrainPoint[];
  /** The busiest first. */
  reporters: readonly DrainReporter[];
}

/** Connections that may be open though nothing is remembered of them: `pins.maxConnections` left no room. Absent: none. */
export interface ForgottenConnections {
  /** Absent: without limit. */
  mayBeOpenUntilMs: number | undefined;
}

export interface EndpointReport {
  cluster: string;
  /** As Envoy spells it; `IP` without a port where only a source named it so. */
  endpoint: string;
  state: EndpointState;
  /** Of `unknown`. */
  reason: PinUnknownReason | undefined;
  source: SourceKind | undefined;
  /** The host name, file or admin address that the source asked. */
  subject: string | undefined;
  listedSinceMs: number | undefined;
  /** Of one that is not listed: node ids of proxies whose own list has it all the same. The first 100. */
  listedBy: readonly string[];
  leftAtMs: number | undefined;
  graceMs: number | undefined;
  /** Requests (HTTP) and new connections (TCP) within the answer's `windowMs`. */
  requests: number;
  /** Of all that its cluster did in the window, 0-1; absent where it did nothing. */
  share: number | undefined;
  /** 1 / listed endpoints, of one that is listed. */
  fairShare: number | undefined;
  /** Ever, as far as remembered. */
  lastUsedMs: number | undefined;
  connections: Record<HolderState, number>;
  forgotten: ForgottenConnections | undefined;
  /** The first ones, worst first. `connections` counts all. Empty for an endpoint that is listed. */
  holders: readonly Holder[];
  /** Only of one that left. */
  drain: DrainCurve | undefined;
}

export interface EndpointsAnswer {
  nowMs: number;
  /** This replica's start; what was open before then is known only if it was used since, or from the state file. */
  startedMs: number;
  windowMs: number;
  /** There are more than are listed here. */
  truncated: boolean;
  endpoints: readonly EndpointReport[];
}
