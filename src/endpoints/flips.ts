import { LRUCache } from 'lru-cache';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import type { SourceKind } from '../model/view.ts';

/** A change of a cluster's list, and what it did to connections. Times epoch ms, our clock. */
export interface Flip {
  atMs: number;
  source: SourceKind;
  added: readonly string[];
  removed: readonly string[];
  /** Connections that were in use to endpoints that this change removed. */
  connectionsLeft: number;
  /** Of the endpoints that it removed, those without a pin by now, and when the last one was last used. */
  cleared: number;
  lastUsedMs: number | undefined;
  /** Connections that were opened since, until the next change: the churn. */
  connectionsOpened: number;
}

/** Changes remembered per cluster; the oldest is forgotten first. */
const maxPerCluster = 20;

/** What each change of a list did. Bounded. */
export class Flips {
  readonly #byCluster: LRUCache<string, Flip[]>;

  constructor(maxClusters: number) {
    this.#byCluster = new LRUCache({ max: maxClusters });
  }

  /** A source's list changed. `inUse`: the connections of the moment. */
  changed(
    { cluster, ...change }: Pick<Flip, 'atMs' | 'source' | 'added' | 'removed'> & { cluster: string },
    inUse: Iterable<UpstreamConnection>,
  ): void {
    const removed = new Set(change.removed);
    let connectionsLeft = 0;
    if (removed.size > 0)
      for (const connection of inUse)
        if (connection.cluster === cluster && isAmong(removed, connection)) connectionsLeft += 1;
    const flips = this.#byCluster.get(cluster) ?? [];
    this.#byCluster.set(cluster, flips);
    flips.push({ ...change, connectionsLeft, cleared: 0, lastUsedMs: undefined, connectionsOpened: 0 });
    if (flips.length > maxPerCluster) flips.shift();
  }

  /** A connection was heard of for the first time. */
  opened({ cluster, openedMs }: UpstreamConnection): void {
    const latest = this.#byCluster.peek(cluster)?.at(-1);
    if (latest !== undefined && openedMs >= latest.atMs) latest.connectionsOpened += 1;
  }

  /** An endpoint that left at that time has no pin any more. */
  endpointCleared({ cluster, leftAtMs, lastUsedMs }: { cluster: string; leftAtMs: number; lastUsedMs: number }): void {
    const flip = this.#byCluster.peek(cluster)?.findLast(({ atMs }) => atMs === leftAtMs);
    if (flip === undefined) return;
    flip.cleared += 1;
    flip.lastUsedMs = Math.max(flip.lastUsedMs ?? 0, lastUsedMs);
  }

  /** Oldest first. */
  of(cluster: string): readonly Flip[] {
    return this.#byCluster.peek(cluster) ?? [];
  }
}

/** A source names an endpoint with its port or without. */
function isAmong(removed: ReadonlySet<string>, { peer }: UpstreamConnection): boolean {
  return removed.has(peer.text) || (peer.ip !== undefined && removed.has(peer.ip));
}
