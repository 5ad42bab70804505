import { judgePin } from '../judge/pin.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { PinVerdict } from '../model/verdict.ts';
import type { ClusterView } from '../model/view.ts';

/** What the tagger knows of a response's connection, Envoy's clock. */
export interface TaggedConnection {
  endpoint: Endpoint;
  /** When the request was sent on it. */
  connectionAgeMs: number | undefined;
  requestStartMs: number | undefined;
}

/** A request is sent a little after it began, and Envoy's clock is taken as ours: the tagger cannot compare them. */
const uncertaintyMs = 1000;

/**
 * The pin of a response that is being tagged. Where Envoy's clock is far behind ours it says `draining` for `stale`;
 * the recorder, which can compare the clocks, says it right.
 */
export function judgeTagged(facts: TaggedConnection, view: ClusterView | undefined, nowMs: number): PinVerdict {
  const { endpoint, connectionAgeMs, requestStartMs = nowMs } = facts;
  // Not from now: the answer may have taken long.
  const sentMs = Math.min(nowMs, requestStartMs);
  return judgePin({
    view,
    endpoint,
    connectionOpenedMs: connectionAgeMs === undefined ? undefined : sentMs - connectionAgeMs,
    requestStartMs,
    nowMs,
    clockUncertaintyMs: uncertaintyMs,
  });
}
