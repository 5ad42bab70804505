import { type HeldConnection, reporterKey } from '../../judge/drained.ts';
import type { ClosedConnection } from './snapshot.ts';

/** Two tellings of one connection agree this well, by two clocks that were each compared with Envoy's. */
const sameMs = 5000;

const worst = { open: 2, idle: 1, unseen: 0 } as const;

/**
 * Connections over all replicas, each once: when a log stream moves, one replica knows a connection from before and the
 * other from after. The one that heard of it last decides. Who knows that it is closed, ends it for all.
 */
export function mergeHolders(
  told: readonly HeldConnection[],
  closed: readonly ClosedConnection[] = [],
): HeldConnection[] {
  const merged = new Map<string, HeldConnection[]>();
  for (const holder of told) {
    const twins = merged.get(keyOf(holder)) ?? [];
    const index = twins.findIndex(({ openedMs }) => Math.abs(openedMs - holder.openedMs) < sameMs);
    const twin = twins[index];
    if (twin === undefined) twins.push(holder);
    else twins[index] = mergeTwo(twin, holder);
    merged.set(keyOf(holder), twins);
  }
  const ends = new Map<string, ClosedConnection[]>();
  for (const end of closed) ends.set(endKey(end), [...(ends.get(endKey(end)) ?? []), end]);
  return [...merged.values()].flat().filter((holder) => {
    const { workload, pod } = holder.reporter;
    return !ends.get(endKey({ ...holder, workload, pod }))?.some((end) => isEndOf(end, holder));
  });
}

function keyOf({ reporter, cluster, endpoint, connectionId }: HeldConnection): string {
  return [reporterKey(reporter), cluster, endpoint, connectionId].join('\n');
}

function endKey({
  workload,
  pod,
  cluster,
  endpoint,
  connectionId,
}: Pick<ClosedConnection, 'workload' | 'pod' | 'cluster' | 'endpoint' | 'connectionId'>): string {
  return [workload, pod, cluster, endpoint, connectionId].join('\n');
}

function isEndOf({ openedMs, closedMs }: ClosedConnection, holder: HeldConnection): boolean {
  return Math.abs(openedMs - holder.openedMs) < sameMs && closedMs > holder.lastUsedMs - sameMs;
}

function mergeTwo(a: HeldConnection, b: HeldConnection): HeldConnection {
  const last = heardLater(a, b) ? a : b;
  const isHttp = last.layer === 'http';
  return {
    ...last,
    openedMs: Math.min(a.openedMs, b.openedMs),
    lastUsedMs: Math.max(a.lastUsedMs, b.lastUsedMs),
    // Each counts the requests that it heard of; of a TCP connection Envoy tells all bytes since it was opened.
    requests: isHttp ? a.requests + b.requests : Math.max(a.requests, b.requests),
    bytes: isHttp ? a.bytes + b.bytes : Math.max(a.bytes, b.bytes),
    reporterConnected: a.reporterConnected || b.reporterConnected,
  };
}

/** Where the clocks do not tell, the one that knows worse things: an idle TCP connection has no use that would date it. */
function heardLater(a: HeldConnection, b: HeldConnection): boolean {
  const laterMs = a.lastUsedMs - b.lastUsedMs;
  if (Math.abs(laterMs) >= sameMs) return laterMs > 0;
  if (a.state !== b.state) return worst[a.state] > worst[b.state];
  return (a.mayBeOpenUntilMs ?? Number.POSITIVE_INFINITY) >= (b.mayBeOpenUntilMs ?? Number.POSITIVE_INFINITY);
}
