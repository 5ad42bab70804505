import { type HeldConnection, reporterKey } from '../../judge/drain-facts.ts';
import type { ClosedConnection } from './snapshot.ts';

/** Two tellings of one connection agree this well, by two clocks that were each compared with Envoy's. */
const sameMs = 5000;

const worst = { open: 2, idle: 1, unseen: 0 } as const;

/**
 * Connections over all replicas, each once: when a log stream moves, one replica knows a connection from before and the
 * other from after. The one that heard of it last decides. Who saw the end of what another lost sight of, ends it.
 * `told`: what each replica said. Two of one replica are never one: it told them apart (Envoys may share a node id).
 */
export function mergeHolders(
  told: readonly (readonly HeldConnection[])[],
  closed: readonly ClosedConnection[] = [],
): HeldConnection[] {
  const merged = new Map<string, { holder: HeldConnection; by: number }[]>();
  for (const [by, holders] of told.entries()) {
    for (const holder of holders) {
      const twins = merged.get(keyOf(holder)) ?? [];
      merged.set(keyOf(holder), twins);
      const twin = twins.find((other) => other.by !== by && isNear(other.holder.openedMs, holder.openedMs));
      if (twin === undefined) twins.push({ holder, by });
      else Object.assign(twin, { holder: mergeTwo(twin.holder, holder), by });
    }
  }
  const ends = Map.groupBy(closed, keyOf);
  const isOver = (holder: HeldConnection) => ends.get(keyOf(holder))?.some((end) => isEndOf(end, holder)) === true;
  return [...merged.values()].flatMap((twins) => twins.map(({ holder }) => holder)).filter((one) => !isOver(one));
}

function keyOf({
  reporter,
  cluster,
  endpoint,
  connectionId,
}: Pick<ClosedConnection, 'reporter' | 'cluster' | 'endpoint' | 'connectionId'>): string {
  return [reporterKey(reporter), cluster, endpoint, connectionId].join('\n');
}

function isNear(oneMs: number, otherMs: number): boolean {
  return Math.abs(oneMs - otherMs) < sameMs;
}

/** What a replica still hears of is another one. */
function isEndOf({ openedMs, closedMs }: ClosedConnection, holder: HeldConnection): boolean {
  return holder.state === 'unseen' && isNear(openedMs, holder.openedMs) && closedMs > holder.lastUsedMs - sameMs;
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

/**
 * Who hears of it now knows more than who lost sight of it. Where the clocks do not tell, the one that knows worse things:
 * an idle TCP connection has no use that would date it.
 */
function heardLater(a: HeldConnection, b: HeldConnection): boolean {
  if (a.state === 'open' && b.state === 'unseen') return true;
  if (a.state === 'unseen' && b.state === 'open') return false;
  const laterMs = a.lastUsedMs - b.lastUsedMs;
  if (Math.abs(laterMs) >= sameMs) return laterMs > 0;
  if (a.state !== b.state) return worst[a.state] > worst[b.state];
  return (a.mayBeOpenUntilMs ?? Number.POSITIVE_INFINITY) >= (b.mayBeOpenUntilMs ?? Number.POSITIVE_INFINITY);
}
