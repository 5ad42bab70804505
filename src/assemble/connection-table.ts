import type { Endpoint } from '../model/endpoint.ts';
import type { Reporter } from '../model/reporter.ts';

/** An upstream connection, as far as entries told. Times are epoch ms, our clock. */
export interface UpstreamConnection {
  streamId: number;
  reporter: Reporter;
  layer: 'http' | 'tcp';
  cluster: string;
  peer: Endpoint;
  /** Unique within one Envoy. */
  connectionId: string;
  openedMs: number;
  /** The latest request's start (http); absent for tcp, where bytes flow without a request. */
  requestStartMs: number | undefined;
  lastUsedMs: number;
  /** Half the width of the interval in which Envoy's times lie on our clock. */
  clockUncertaintyMs: number;
  requests: number;
  /** To and from the upstream, since `openedMs` as far as seen. */
  bytes: number;
}

/** A connection as one entry shows it. */
export type ConnectionSeen = Omit<UpstreamConnection, 'requests' | 'bytes'>;

/** How a connection left the table: its end was logged, it was quiet for too long, or the table or stream let go of it. */
export type ConnectionEnd = 'closed' | 'quiet' | 'evicted' | 'stream_ended';

export interface ConnectionTableOptions {
  /** Connections held at once; the one unused for longest leaves first. */
  maxConnections: number;
  /** An HTTP connection unused for this long leaves: Envoy logs nothing when an idle pooled connection closes. */
  quietMs: number;
}

/** Remembers upstream connections while they are used, so that a pin shows while it lives. Bounded. */
export class ConnectionTable {
  readonly #options: ConnectionTableOptions;
  readonly #onEnd: (connection: UpstreamConnection, how: ConnectionEnd) => void;
  /** In order of last use. */
  readonly #byId = new Map<string, UpstreamConnection>();
  #advancedToMs = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionTableOptions, onEnd: (connection: UpstreamConnection, how: ConnectionEnd) => void) {
    this.#options = options;
    this.#onEnd = onEnd;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** A request used this connection, and moved so many bytes. */
  request(seen: ConnectionSeen, bytes: number): UpstreamConnection {
    const known = this.#known(seen);
    return this.#put({
      ...seen,
      // Requests that share an HTTP/2 connection do not end in the order in which they began.
      requestStartMs: latest(seen.requestStartMs, known?.requestStartMs),
      lastUsedMs: Math.max(seen.lastUsedMs, known?.lastUsedMs ?? 0),
      requests: (known?.requests ?? 0) + 1,
      bytes: (known?.bytes ?? 0) + bytes,
    });
  }

  /** This connection has moved so many bytes since it was opened. */
  bytesSoFar(seen: ConnectionSeen, bytes: number): UpstreamConnection {
    return this.#put({ ...seen, requests: 0, bytes });
  }

  /** Bytes seen so far of a connection; absent: not seen before. */
  knownBytes(seen: ConnectionSeen): number | undefined {
    return this.#known(seen)?.bytes;
  }

  /** The end was logged. Unknown ids are ignored. */
  closed(streamId: number, connectionId: string): void {
    this.#end(this.#byId.get(idOf(streamId, connectionId)), 'closed');
  }

  /** Lets go of what has been quiet too long. */
  advance(nowMs: number): void {
    if (nowMs < this.#advancedToMs) this.#clockSetBack(nowMs);
    this.#advancedToMs = nowMs;
    for (const connection of this.#byId.values()) {
      if (connection.lastUsedMs + this.#options.quietMs > nowMs) break;
      this.#end(connection, 'quiet');
    }
  }

  /** Another stream, perhaps another replica, reports them from now on: they leave at once, so that none counts twice. */
  endStream(streamId: number): void {
    for (const connection of this.#byId.values())
      if (connection.streamId === streamId) this.#end(connection, 'stream_ended');
  }

  /** All of them, longest unused first. */
  connections(): IterableIterator<UpstreamConnection> {
    return this.#byId.values();
  }

  #known(seen: ConnectionSeen): UpstreamConnection | undefined {
    return this.#byId.get(idOf(seen.streamId, seen.connectionId));
  }

  #put(connection: UpstreamConnection): UpstreamConnection {
    const id = idOf(connection.streamId, connection.connectionId);
    this.#byId.delete(id);
    this.#byId.set(id, connection);
    if (this.#byId.size > this.#options.maxConnections) this.#evictOldest();
    return connection;
  }

  /** Else what is held would seem in use until the clock is where it was. */
  #clockSetBack(nowMs: number): void {
    for (const connection of this.#byId.values()) connection.lastUsedMs = Math.min(connection.lastUsedMs, nowMs);
  }

  #evictOldest(): void {
    const oldest = this.#byId.values().next().value;
    this.#end(oldest, 'evicted');
  }

  #end(connection: UpstreamConnection | undefined, how: ConnectionEnd): void {
    if (connection === undefined) return;
    this.#byId.delete(idOf(connection.streamId, connection.connectionId));
    this.#onEnd(connection, how);
  }
}

function latest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

function idOf(streamId: number, connectionId: string): string {
  return `${streamId}|${connectionId}`;
}
