import type { ClosedBy } from '../model/closed-by.ts';
import type { ClearedHow, ClearedPin, PinEvent, PinLife } from '../model/pin-life.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import { hasLeft, type PinVerdict } from '../model/verdict.ts';

/** An endpoint to which no pin is left. */
export interface EndpointCleared {
  cluster: string;
  endpoint: string;
  leftAtMs: number;
  lastUsedMs: number;
  /** Connections that were pinned to it, and how many of them are known to be closed. */
  pins: number;
  closed: number;
}

export interface PinLivesSink {
  changed(event: PinEvent, life: PinLife | ClearedPin): void;
  endpointCleared(endpoint: EndpointCleared): void;
}

export interface PinLivesOptions {
  /** Pins that are over, kept for the API; the oldest leaves first. */
  maxCleared: number;
  /** How long a pin whose log stream ended is waited for, ms. */
  waitMs: number;
}

/** A judged connection. */
export interface JudgedConnection {
  connection: UpstreamConnection;
  verdict: PinVerdict;
}

interface Kept extends PinLife {
  /** Its log stream ended then. */
  unheardSinceMs: number | undefined;
}

/**
 * The life of every pin, from the moment its endpoint left to its end:
 *
 *     (connection) ── its endpoint left ──▶ draining ── grace over ──▶ stale, stale_view ── over ──▶ cleared
 *                                              └──────────────── over ────────────────────────────────┘
 */
export class PinLives {
  readonly #options: PinLivesOptions;
  readonly #sink: PinLivesSink;
  readonly #bySerial = new Map<number, Kept>();
  readonly #cleared: ClearedPin[] = [];
  readonly #drains = new Map<string, EndpointCleared & { live: number }>();

  constructor(options: PinLivesOptions, sink: PinLivesSink) {
    this.#options = options;
    this.#sink = sink;
  }

  /** Whether this connection is a pin, as far as is known here. */
  has({ serial }: UpstreamConnection): boolean {
    return this.#bySerial.has(serial);
  }

  /** Takes connections in use, judged now: at least those that are pins or may be. A view that cannot tell changes nothing. */
  update(judged: Iterable<JudgedConnection>, nowMs: number): void {
    for (const { connection, verdict } of judged) {
      const life = this.#bySerial.get(connection.serial);
      if (hasLeft(verdict.pin) && verdict.leftAtMs !== undefined) this.#pinned(connection, verdict, nowMs);
      else if (life !== undefined && verdict.pin !== 'unknown') this.#clear(life, 'relisted', undefined, nowMs);
      else if (life !== undefined) Object.assign(life, { connection, unheardSinceMs: undefined });
    }
    for (const life of this.#bySerial.values()) {
      const { unheardSinceMs } = life;
      if (unheardSinceMs !== undefined && nowMs - unheardSinceMs > this.#options.waitMs)
        this.#clear(life, 'moved', undefined, nowMs);
    }
  }

  /** A connection is no longer in use. `last`: its verdict then. */
  ended(
    connection: UpstreamConnection,
    how: Extract<ClearedHow, 'closed' | 'gone' | 'quiet' | 'evicted'> | 'stream_ended',
    last: PinVerdict,
    by: ClosedBy | undefined,
    nowMs: number,
  ): void {
    if (hasLeft(last.pin)) this.#pinned(connection, last, nowMs);
    const life = this.#bySerial.get(connection.serial);
    if (life === undefined) return;
    life.connection = connection;
    if (how === 'stream_ended') life.unheardSinceMs = nowMs;
    else this.#clear(life, how, by, nowMs);
  }

  /** Those that are over, oldest first. */
  cleared(): readonly ClearedPin[] {
    return this.#cleared;
  }

  #pinned(connection: UpstreamConnection, { pin, leftAtMs = 0, source }: PinVerdict, nowMs: number): void {
    const known = this.#bySerial.get(connection.serial);
    const life = { connection, pin, leftAtMs, source, sinceMs: known?.sinceMs ?? nowMs, unheardSinceMs: undefined };
    this.#bySerial.set(connection.serial, life);
    if (known === undefined) {
      this.#drainOf(life).live += 1;
      this.#drainOf(life).pins += 1;
      this.#sink.changed('opened', life);
    }
    if ((pin === 'stale' || pin === 'stale_view') && known?.pin !== pin) this.#sink.changed(pin, life);
  }

  #clear(life: Kept, how: ClearedHow, by: ClosedBy | undefined, nowMs: number): void {
    this.#bySerial.delete(life.connection.serial);
    const { connection, pin, leftAtMs, source, sinceMs } = life;
    const cleared = { connection, pin, leftAtMs, source, sinceMs, clearedMs: nowMs, how, by };
    this.#cleared.push(cleared);
    if (this.#cleared.length > this.#options.maxCleared) this.#cleared.shift();
    this.#sink.changed('cleared', cleared);
    const drain = this.#drainOf(life);
    drain.live -= 1;
    drain.closed += how === 'closed' || how === 'gone' ? 1 : 0;
    drain.lastUsedMs = Math.max(drain.lastUsedMs, life.connection.lastUsedMs);
    if (drain.live > 0) return;
    const { live: _live, ...endpoint } = drain;
    this.#drains.delete(drainKey(life));
    // What is listed again was not drained; what moved or was pushed out may be in use.
    if (how === 'closed' || how === 'gone' || how === 'quiet') this.#sink.endpointCleared(endpoint);
  }

  #drainOf(life: PinLife): EndpointCleared & { live: number } {
    const key = drainKey(life);
    const known = this.#drains.get(key);
    if (known !== undefined) return known;
    const { cluster, peer } = life.connection;
    const drain = {
      cluster,
      endpoint: peer.text,
      leftAtMs: life.leftAtMs,
      lastUsedMs: life.leftAtMs,
      pins: 0,
      closed: 0,
      live: 0,
    };
    this.#drains.set(key, drain);
    return drain;
  }
}

function drainKey({ connection: { cluster, peer } }: PinLife): string {
  return `${cluster}\n${peer.text}`;
}
