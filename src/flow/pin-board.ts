import { judgePin } from '../judge/pin.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import type { PinVerdict } from '../model/verdict.ts';
import type { ClusterView, DiscoveryView } from '../model/view.ts';

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
    view: listFor(connection, view),
    endpoint: connection.peer,
    connectionOpenedMs: connection.openedMs,
    requestStartMs: connection.requestStartMs,
    nowMs,
    clockUncertaintyMs: connection.clockUncertaintyMs,
  });
}

/**
 * A dynamic forward proxy forgets an address that no new connection asked for (`host_ttl`, 5 min by default), while one
 * that was made before goes on: on TCP, where nothing asks again, that it is not listed says nothing.
 */
function listFor({ layer, cluster, reporter }: UpstreamConnection, view: DiscoveryView): ClusterView | undefined {
  const list = view.cluster(cluster, reporter.nodeId);
  const forgets = (type: string | undefined) => type === 'envoy.clusters.dynamic_forward_proxy';
  const isForgotten =
    layer === 'tcp' && list?.source === 'envoy' && forgets(view.proxy(cluster, reporter.nodeId)?.type);
  return isForgotten ? undefined : list;
}
