import type { ClosedBy } from '../model/closed-by.ts';
import type { UnderWay, UpstreamConnection } from '../model/upstream-connection.ts';
import { ParkedConnections } from './parked-connections.ts';
import { leastWorthy } from './worth.ts';

/** A connection as one entry shows it. */
export type ConnectionSeen = Omit<UpstreamConnection, 'serial' | 'requests' | 'bytes' | 'underWay'>;

/** What an entry says that a connection is used for. */
export interface ConnectionUse {
  /** The request's; of TCP the connection's own. */
  key: string;
  /** Both ways, since the request, or the TCP connection, began. */
  bytes: number;
  ended: boolean;
  /** Whether they count although nothing was heard of this use before. Else another replica may have counted them. */
  countsFromStart: boolean;
}

/** A connection after an entry, and what that entry added. */
export interface ConnectionHeard {
  connection: UpstreamConnection;
  newBytes: number;
  /** Never heard of before. */
  isNew: boolean;
}

/**
 * How a connection left the ones in use: its end was logged, Envoy says that it is not there, it was quiet for too long,
 * the table had no room, or its stream ended and another one, perhaps of another replica, tells of it from now on.
 */
export type ConnectionEnd = 'closed' | 'gone' | 'quiet' | 'evicted' | 'stream_ended';

export interface ConnectionTableOptions {
  /** Connections held in use at once, and as many again that may still be open. */
  maxConnections: number;
  /** A connection of which nothing was heard for this long counts no longer as in use. */
  quietMs: number;
  /**
   * When another stream tells of it no longer than this after the last one did, it is taken that none of another replica
   * told of it in between.
   */
  resumeMs: number;
}

export interface ConnectionTableSink {
  /** It is no longer in use. `by`: of `closed`, if Envoy said it. */
  ended(connection: UpstreamConnection, how: ConnectionEnd, by: ClosedBy | undefined): void;
  /** After which Envoy closes a connection that nobody uses; `undefined`: never. */
  idleTimeoutMs(connection: UpstreamConnection): number | undefined;
  /** There is no room to remember it any longer, though it may be open. */
  forgotten(connection: UpstreamConnection): void;
  /** Such connections leave a full table last. */
  isPinned(connection: UpstreamConnection): boolean;
}

/** Idle timeouts are long, and there may be many parked: no need to look often. */
const parkedBeatMs = 5000;

/** A request whose end was lost must not be believed for ever, nor may one connection hold any number of them. */
const maxUnderWay = 256;

/**
 * Remembers upstream connections while they are used, so that a pin shows while it lives, and after that for as long
 * as they may be open: Envoy logs nothing when an idle pooled connection closes. Bounded.
 */
export class ConnectionTable {
  readonly #options: ConnectionTableOptions;
  readonly #sink: ConnectionTableSink;
  /** In the order in which they were heard of. */
  readonly #inUse = new Map<string, Mutable>();
  readonly #parked: ParkedConnections;
  #serials = 0;
  #advancedToMs = Number.NEGATIVE_INFINITY;
  #parkedAdvancedToMs = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionTableOptions, sink: ConnectionTableSink) {
    this.#options = options;
    this.#sink = sink;
    this.#parked = new ParkedConnections(options.maxConnections, sink);
  }

  /** Those in use. */
  get size(): number {
    return this.#inUse.size;
  }

  /** Whether an entry told of this connection before. */
  knows(seen: ConnectionSeen): boolean {
    return this.#inUse.has(idOf(seen.streamId, seen.connectionId)) || this.#parked.has(seen);
  }

  /** An entry told of a connection. */
  heard(seen: ConnectionSeen, use: ConnectionUse): ConnectionHeard {
    const id = idOf(seen.streamId, seen.connectionId);
    const known = this.#inUse.get(id) ?? this.#parked.claim(seen);
    const before = known?.underWay.get(use.key)?.bytes;
    const grown = before === undefined ? 0 : Math.max(0, use.bytes - before);
    const newBytes = before === undefined ? firstBytes(use) : this.#isNextTold(seen, known) ? grown : 0;
    const underWay = known?.underWay ?? new Map<string, UnderWay>();
    this.#follow(underWay, use, seen.lastHeardMs);
    const isRequestEnd = use.ended && seen.layer === 'http';
    const moved = known === undefined || newBytes + grown > 0 || isRequestEnd;
    const connection = {
      ...seen,
      serial: known?.serial ?? this.#nextSerial(),
      // Requests that share an HTTP/2 connection do not end in the order in which they began.
      requestStartMs: latest(seen.requestStartMs, known?.requestStartMs),
      lastUsedMs: moved ? Math.max(seen.lastUsedMs, known?.lastUsedMs ?? 0) : known.lastUsedMs,
      requests: (known?.requests ?? 0) + (isRequestEnd ? 1 : 0),
      bytes: (known?.bytes ?? 0) + newBytes,
      underWay,
    };
    this.#put(id, connection);
    return { connection, newBytes, isNew: known === undefined };
  }

  /** The end was logged. Unknown ids are ignored. */
  closed(streamId: number, connectionId: string, by: ClosedBy | undefined): void {
    this.#end(idOf(streamId, connectionId), 'closed', by);
  }

  /** Envoy itself says that it has no such connection. */
  gone(connection: UpstreamConnection): void {
    this.#end(idOf(connection.streamId, connection.connectionId), 'gone', undefined);
    this.#parked.forget(connection);
  }

  /** Lets go of what has been quiet too long. */
  advance(nowMs: number): void {
    if (nowMs < this.#advancedToMs) this.#clockSetBack(nowMs);
    this.#advancedToMs = nowMs;
    for (const [id, connection] of this.#inUse) {
      if (connection.lastHeardMs + this.#options.quietMs > nowMs) break;
      this.#park(id, connection, 'quiet');
    }
    if (Math.abs(nowMs - this.#parkedAdvancedToMs) < parkedBeatMs) return;
    this.#parkedAdvancedToMs = nowMs;
    this.#parked.advance(nowMs);
  }

  /** Our clock was set forward by so much: nothing that is held has become older by it. */
  clockSetForward(byMs: number): void {
    this.#advancedToMs += byMs;
    for (const connection of [...this.#inUse.values(), ...this.#parked.connections()]) {
      connection.lastHeardMs += byMs;
      connection.lastUsedMs += byMs;
      for (const request of connection.underWay.values()) request.heardMs += byMs;
    }
  }

  /** Another stream, perhaps another replica, tells of them from now on: they leave at once, so that none counts twice. */
  endStream(streamId: number): void {
    for (const [id, connection] of this.#inUse)
      if (connection.streamId === streamId) this.#park(id, connection, 'stream_ended');
  }

  /** Whether it is in use now, in this or a later state. */
  isInUse({ streamId, connectionId, serial }: UpstreamConnection): boolean {
    return this.#inUse.get(idOf(streamId, connectionId))?.serial === serial;
  }

  /** Those in use, longest unheard first. */
  connections(): IterableIterator<UpstreamConnection> {
    return this.#inUse.values();
  }

  /** Those that may still be open, though nothing was heard of them lately. */
  parked(): Iterable<UpstreamConnection> {
    return this.#parked.connections();
  }

  /** Takes what another run of this process remembered. */
  restore(connections: readonly Omit<UpstreamConnection, 'serial' | 'streamId'>[]): void {
    for (const { underWay, ...connection } of connections)
      this.#parked.park({
        ...connection,
        serial: this.#nextSerial(),
        streamId: noStream,
        underWay: new Map(underWay),
      });
  }

  /** Else another replica may have counted what flowed since we were told last. */
  #isNextTold(seen: ConnectionSeen, last: UpstreamConnection | undefined): boolean {
    if (last === undefined || last.streamId === seen.streamId) return true;
    return seen.lastHeardMs - last.lastHeardMs <= this.#options.resumeMs;
  }

  #follow(underWay: Map<string, UnderWay>, use: ConnectionUse, heardMs: number): void {
    for (const [key, one] of underWay) if (heardMs - one.heardMs > this.#options.quietMs) underWay.delete(key);
    if (use.ended) underWay.delete(use.key);
    else if (underWay.size < maxUnderWay || underWay.has(use.key)) underWay.set(use.key, { bytes: use.bytes, heardMs });
  }

  #put(id: string, connection: Mutable): void {
    this.#inUse.delete(id);
    this.#inUse.set(id, connection);
    if (this.#inUse.size > this.#options.maxConnections) this.#evict();
  }

  #park(id: string, connection: Mutable, how: ConnectionEnd): void {
    this.#end(id, how, undefined);
    this.#parked.park(connection);
  }

  /** Else what is held would seem in use until the clock is where it was. */
  #clockSetBack(nowMs: number): void {
    for (const connection of this.#inUse.values()) {
      connection.lastHeardMs = Math.min(connection.lastHeardMs, nowMs);
      connection.lastUsedMs = Math.min(connection.lastUsedMs, nowMs);
    }
    this.#parked.clockSetBack(nowMs);
  }

  #evict(): void {
    for (const connection of leastWorthy([...this.#inUse.values()], (one) => this.#sink.isPinned(one)))
      this.#park(idOf(connection.streamId, connection.connectionId), connection, 'evicted');
  }

  #end(id: string, how: ConnectionEnd, by: ClosedBy | undefined): void {
    const connection = this.#inUse.get(id);
    if (connection === undefined) return;
    this.#inUse.delete(id);
    this.#sink.ended(connection, how, by);
  }

  #nextSerial(): number {
    this.#serials += 1;
    return this.#serials;
  }
}

interface Mutable extends UpstreamConnection {
  underWay: Map<string, UnderWay>;
}

/** Of a connection that no stream told of yet. */
const noStream = -1;

function firstBytes({ countsFromStart, bytes }: ConnectionUse): number {
  return countsFromStart ? bytes : 0;
}

function latest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

function idOf(streamId: number, connectionId: string): string {
  return `${streamId}|${connectionId}`;
}
