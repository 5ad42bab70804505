import type { ConnectionSeen } from '../assemble/connection-table.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Reporter } from '../model/reporter.ts';

/** How Envoy's clock maps to ours, ms. Infinite uncertainty: not at all. */
export interface ClockMapping {
  offsetMs: number;
  uncertaintyMs: number;
}

/** Of a stream that is gone, or told no time yet. Under it a connection to an endpoint that left is only draining. */
export const unknownClock: ClockMapping = { offsetMs: 0, uncertaintyMs: Number.POSITIVE_INFINITY };

/** One use of an upstream connection, Envoy's clock. An attempt is one. */
interface Use {
  startMs: number;
  durationMs: number | undefined;
  /** Since `startMs`. */
  firstUpstreamTxMs: number | undefined;
  connectionAgeMs: number | undefined;
}

/** When the connection was opened, our clock; absent where Envoy did not say how old it was. */
export function openedMs(use: Use, clock: ClockMapping): number | undefined {
  if (use.connectionAgeMs === undefined) return undefined;
  return use.startMs + (use.firstUpstreamTxMs ?? 0) - use.connectionAgeMs + clock.offsetMs;
}

/** When the use ended, our clock; `nowMs` where the clocks cannot be compared. */
export function endedMs(use: Use, clock: ClockMapping, nowMs: number): number {
  if (clock.uncertaintyMs === Number.POSITIVE_INFINITY) return nowMs;
  return use.startMs + (use.durationMs ?? 0) + clock.offsetMs;
}

/** The upstream connection that an entry tells of; `undefined`: it tells of none, or not how old it is. */
export function connectionOf(
  entry: LogEntry,
  from: { streamId: number; reporter: Reporter; clock: ClockMapping; receivedMs: number },
): ConnectionSeen | undefined {
  const { startMs, cluster, upstream, layer } = entry;
  const { connectionId, connectionAgeMs } = entry.tags;
  if (startMs === undefined || cluster === undefined || upstream === undefined || connectionId === undefined)
    return undefined;
  const { streamId, reporter, clock, receivedMs } = from;
  // A TCP entry has no age: its own start is when the client, and with it the upstream, was connected.
  const use = layer === 'tcp' ? { ...entry, startMs, connectionAgeMs: 0 } : { ...entry, startMs, connectionAgeMs };
  const opened = openedMs(use, clock);
  if (opened === undefined) return undefined;
  return {
    streamId,
    reporter,
    layer,
    cluster,
    peer: upstream,
    connectionId,
    openedMs: opened,
    requestStartMs: layer === 'tcp' ? undefined : startMs + clock.offsetMs,
    lastUsedMs: layer === 'tcp' ? receivedMs : endedMs(use, clock, receivedMs),
    lastHeardMs: receivedMs,
    clockUncertaintyMs: clock.uncertaintyMs,
  };
}
