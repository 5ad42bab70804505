import type { UnderWay, UpstreamConnection } from '../model/upstream-connection.ts';
import type { ConnectionSeen, ConnectionTableSink } from './connection-table.ts';
import { leastWorthy } from './worth.ts';

interface Parked extends UpstreamConnection {
  underWay: Map<string, UnderWay>;
}

/** Beyond what the clocks leave open, an age is told in µs: two tellings of one connection agree this well, ms. */
const sameOpeningMs = 1000;

/**
 * Connections of which nothing was heard lately, by what stays the same when another log stream tells of them. They
 * leave when they must have been closed for want of use.
 */
export class ParkedConnections {
  readonly #max: number;
  readonly #sink: Pick<ConnectionTableSink, 'idleTimeoutMs' | 'isPinned' | 'forgotten'>;
  readonly #byIdentity = new Map<string, Parked[]>();
  #size = 0;

  constructor(max: number, sink: Pick<ConnectionTableSink, 'idleTimeoutMs' | 'isPinned' | 'forgotten'>) {
    this.#max = max;
    this.#sink = sink;
  }

  park(connection: Parked): void {
    const identity = identityOf(connection);
    const twins = this.#byIdentity.get(identity);
    if (twins === undefined) this.#byIdentity.set(identity, [connection]);
    else twins.push(connection);
    this.#size += 1;
    if (this.#size > this.#max) this.#evict();
  }

  has(seen: ConnectionSeen): boolean {
    return this.#find(seen) !== undefined;
  }

  /** The one that an entry tells of, taken out. Two Envoys may have the same node id: then the openings differ. */
  claim(seen: ConnectionSeen): Parked | undefined {
    const found = this.#find(seen);
    if (found !== undefined) this.forget(found);
    return found;
  }

  forget(connection: UpstreamConnection): void {
    const identity = identityOf(connection);
    const twins = this.#byIdentity.get(identity) ?? [];
    const rest = twins.filter(({ serial }) => serial !== connection.serial);
    this.#size -= twins.length - rest.length;
    if (rest.length === 0) this.#byIdentity.delete(identity);
    else this.#byIdentity.set(identity, rest);
  }

  advance(nowMs: number): void {
    for (const connection of this.connections()) {
      const timeoutMs = this.#sink.idleTimeoutMs(connection);
      if (timeoutMs !== undefined && connection.lastHeardMs + timeoutMs <= nowMs) this.forget(connection);
    }
  }

  *connections(): Generator<Parked> {
    for (const twins of this.#byIdentity.values()) yield* twins;
  }

  clockSetBack(nowMs: number): void {
    for (const connection of this.connections()) {
      connection.lastHeardMs = Math.min(connection.lastHeardMs, nowMs);
      connection.lastUsedMs = Math.min(connection.lastUsedMs, nowMs);
    }
  }

  #find(seen: ConnectionSeen): Parked | undefined {
    return this.#byIdentity.get(identityOf(seen))?.find((parked) => isSame(parked, seen));
  }

  #evict(): void {
    for (const connection of leastWorthy([...this.connections()], (one) => this.#sink.isPinned(one))) {
      this.forget(connection);
      this.#sink.forgotten(connection);
    }
  }
}

function isSame(parked: Parked, seen: ConnectionSeen): boolean {
  const apartMs = Math.abs(parked.openedMs - seen.openedMs);
  return apartMs <= parked.clockUncertaintyMs + seen.clockUncertaintyMs + sameOpeningMs;
}

function identityOf({ reporter, cluster, peer, connectionId }: ConnectionSeen): string {
  return [reporter.nodeId, reporter.pod, cluster, peer.text, connectionId].join('|');
}
