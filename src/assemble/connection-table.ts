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

  constructor(options: ConnectionTableOptions, onEnd: (connection: UpstreamConnection, how: ConnectionEnd) => void) {
    this.#options = options;
    this.#onEnd = onEnd;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** A request, or bytes, used this connection. */
  used(seen: Omit<UpstreamConnection, 'requests' | 'bytes'>, use: { requests: number; bytes: number }): void {
    const id = idOf(seen.streamId, seen.connectionId);
    const known = this.#byId.get(id);
    this.#byId.delete(id);
    this.#byId.set(id, {
      ...seen,
      openedMs: Math.min(seen.openedMs, known?.openedMs ?? seen.openedMs),
      requests: (known?.requests ?? 0) + use.requests,
      bytes: (known?.bytes ?? 0) + use.bytes,
    });
    if (this.#byId.size > this.#options.maxConnections) this.#evictOldest();
  }

  /** The end was logged. Unknown ids are ignored. */
  closed(streamId: number, connectionId: string): void {
    this.#end(this.#byId.get(idOf(streamId, connectionId)), 'closed');
  }

  /** Lets go of what has been quiet too long. */
  advance(nowMs: number): void {
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

function idOf(streamId: number, connectionId: string): string {
  return `${streamId}|${connectionId}`;
}
