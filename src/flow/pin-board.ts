import { judgePin } from '../judge/pin.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import type { PinVerdict } from '../model/verdict.ts';
import type { DiscoveryView } from '../model/view.ts';

/** A connection and what it is worth at this moment. */
export interface BoardRow {
  connection: UpstreamConnection;
  verdict: PinVerdict;
  ageMs: number;
}

/** Connections judged against the view of this moment, so that a pin shows without a new request. */
export function pinBoard(connections: Iterable<UpstreamConnection>, view: DiscoveryView, nowMs: number): BoardRow[] {
  return Array.from(connections, (connection) => ({
    connection,
    verdict: judgeConnection(connection, view, nowMs),
    ageMs: Math.max(0, nowMs - connection.openedMs),
  }));
}

/** One connection, as of now. */
export function judgeConnection(connection: UpstreamConnection, view: DiscoveryView, nowMs: number): PinVerdict {
  return judgePin({
    view: view.cluster(connection.cluster, connection.reporter.nodeId),
    endpoint: connection.peer,
    connectionOpenedMs: connection.openedMs,
    requestStartMs: connection.requestStartMs,
    nowMs,
    clockUncertaintyMs: connection.clockUncertaintyMs,
  });
}
