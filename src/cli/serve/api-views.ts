import type { CoveredReporter } from '../../flow/coverage.ts';
import type { BoardRow } from '../../flow/pin-board.ts';
import type { ClearedPin } from '../../model/pin-life.ts';
import type { UpstreamConnection } from '../../model/upstream-connection.ts';
import type { PinVerdict } from '../../model/verdict.ts';
import type { ClusterView } from '../../model/view.ts';

/** The most rows of one answer: the page and a person read it, not a database. */
const longest = 1000;

/** `/api/v1/pins`: connections in use, worst and oldest first, and the latest pins that cleared, latest first. */
export function pinsView(board: readonly BoardRow[], cleared: readonly ClearedPin[], nowMs: number) {
  const counts: Record<string, number> = {};
  for (const { verdict } of board) counts[verdict.pin] = (counts[verdict.pin] ?? 0) + 1;
  const pins = board
    .map(({ connection, verdict, ageMs }) => ({ ...connectionView(connection, verdict), ageMs }))
    .toSorted((a, b) => rank(a.pin) - rank(b.pin) || b.ageMs - a.ageMs)
    .slice(0, longest);
  return {
    nowMs,
    counts,
    pins,
    cleared: cleared
      .toReversed()
      .slice(0, longest)
      .map(({ connection, pin, leftAtMs, source, sinceMs, clearedMs, how, by }) => ({
        ...connectionView(connection, { pin, reason: undefined, leftAtMs, source }),
        sinceMs,
        clearedMs,
        how,
        by,
      })),
  };
}

/** `/api/v1/clusters`: what discovery knows, and how old that is. */
export function clustersView(views: readonly ClusterView[], nowMs: number) {
  return {
    nowMs,
    clusters: views.slice(0, longest).map(({ listed, left, ...view }) => ({
      ...view,
      stale: view.lastAnswerMs === undefined || nowMs - view.lastAnswerMs > view.staleAfterMs,
      listed: Array.from(listed, ([endpoint, sinceMs]) => ({ endpoint, sinceMs })),
      left: Array.from(left, ([endpoint, leftAtMs]) => ({ endpoint, leftAtMs })),
    })),
  };
}

/** `/api/v1/reporters`: who reports, and when it was last heard. */
export function reportersView(reporters: readonly CoveredReporter[], nowMs: number) {
  return {
    nowMs,
    reporters: reporters
      .slice(-longest)
      .map(({ reporter, ...row }) => ({ ...reporter, ...row, silentMs: Math.max(0, nowMs - row.lastEntryMs) })),
  };
}

function connectionView(connection: UpstreamConnection, verdict: PinVerdict) {
  const { reporter, cluster, peer, layer, connectionId, openedMs, lastUsedMs, requests, bytes } = connection;
  const { kind, workload, namespace, pod } = reporter;
  return {
    pin: verdict.pin,
    reason: verdict.reason,
    cluster,
    endpoint: peer.text,
    layer,
    connectionId,
    reporter: { kind, workload, namespace, pod },
    source: verdict.source,
    leftAtMs: verdict.leftAtMs,
    openedMs,
    lastUsedMs,
    requests,
    bytes,
  };
}

const order = ['stale', 'stale_view', 'draining', 'unknown', 'unlisted', 'current'];

function rank(pin: string): number {
  return order.indexOf(pin);
}
