import type { Exchange, IncompleteReason } from '../model/exchange.ts';
import type { JoinEvent } from '../model/join-event.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import { buildExchange, isRedirect, isSame } from './build-exchange.ts';
import { isMirror } from './mirrors.ts';
import { RecentKeys } from './recent-keys.ts';

/** The stream that an entry came on. `id` is unique in this process. */
export interface JoinStream {
  id: number;
  profile: Profile;
  reporter: Reporter;
}

export interface JoinOptions {
  /** From an exchange's end to its closing, ms. More than Envoy's `buffer_flush_interval` (1 s): an attempt's entry may follow the end. */
  lingerMs: number;
  /** From an exchange's first entry to giving up on its end, ms. */
  maxWaitMs: number;
  /** Exchanges held at once; the oldest leaves first. Up to as many closed keys are remembered, to know a late entry. */
  maxExchanges: number;
  /** Attempts kept per exchange; further ones are counted as `refused`. */
  maxAttempts: number;
}

export interface JoinSink {
  exchange(exchange: Exchange, streamId: number): void;
  /** `mirror` entries belong to no exchange; `keyless` ones cannot be joined. */
  count(event: JoinEvent): void;
}

interface Open {
  id: string;
  stream: JoinStream;
  key: string;
  ends: LogEntry[];
  tries: LogEntry[];
  /** When to close it or give it up, epoch ms. */
  dueMs: number;
}

/**
 * Joins entries by (stream, key). States of a key:
 *
 *     (new) ──entry──▶ waiting ──end──▶ lingering ──linger──▶ closed ──entry──▶ closed (late)
 *                        │ longest wait, table full: closed as unknown
 *                        │ stream ended: orphan ──entry of the same node and key──▶ waiting
 *
 * Both waiting and lingering exchanges leave in the order they entered, so two insertion-ordered maps are the queues.
 */
export class Joiner {
  readonly #options: JoinOptions;
  readonly #sink: JoinSink;
  readonly #waiting = new Map<string, Open>();
  readonly #lingering = new Map<string, Open>();
  /** Waiting exchanges whose stream ended, by `orphanId`: Envoy reopens a stream at once, often to us again. */
  readonly #orphans = new Map<string, Open>();
  readonly #closed: RecentKeys;
  #advancedToMs = Number.NEGATIVE_INFINITY;

  constructor(options: JoinOptions, sink: JoinSink) {
    this.#options = options;
    this.#sink = sink;
    this.#closed = new RecentKeys(options.maxExchanges);
  }

  /** Exchanges held now; never more than `maxExchanges`. */
  get size(): number {
    return this.#waiting.size + this.#lingering.size + this.#orphans.size;
  }

  /** Takes one HTTP entry. Entries of a life that still goes on (`downstream_start`, periodic) change nothing yet. */
  add(stream: JoinStream, entry: LogEntry, nowMs: number): void {
    if (entry.type !== 'upstream_end' && entry.type !== 'downstream_end') return;
    if (entry.type === 'upstream_end' && isMirror(entry, stream.reporter.envoyVersion))
      return this.#sink.count('mirror');
    if (entry.key === undefined) return this.#keyless(stream, entry);
    const id = `${stream.id}|${entry.key}`;
    if (this.#closed.has(id)) return this.#sink.count('late');
    const open = this.#find(id) ?? this.#adopt(id, stream, entry.key);
    if (open === undefined && this.#closed.has(orphanId(stream, entry.key))) return this.#sink.count('late');
    this.#put(open ?? this.#open(id, stream, entry.key, nowMs), entry, nowMs);
  }

  /** Closes what is due. To be called often. */
  advance(nowMs: number): void {
    if (nowMs < this.#advancedToMs) this.#clockSetBack(nowMs);
    this.#advancedToMs = nowMs;
    for (const open of this.#lingering.values()) {
      if (open.dueMs > nowMs) break;
      this.#close(open, undefined);
    }
    for (const open of this.#waiting.values()) {
      if (open.dueMs > nowMs) break;
      this.#sink.count('expired');
      this.#close(open, 'end_not_seen');
    }
    for (const open of this.#orphans.values()) {
      if (open.dueMs > nowMs) break;
      this.#close(open, 'stream_ended');
    }
  }

  /** The stream ended: what has its end closes now, the rest waits for the stream that Envoy opens instead. */
  endStream(streamId: number, nowMs: number): void {
    for (const open of this.#lingering.values()) {
      if (open.stream.id !== streamId) continue;
      this.#close(open, undefined);
      // A last attempt's entry may come on the stream that Envoy opens instead.
      this.#closed.add(orphanId(open.stream, open.key));
    }
    for (const open of this.#waiting.values()) {
      if (open.stream.id !== streamId) continue;
      this.#waiting.delete(open.id);
      this.#sink.count('orphaned');
      const id = orphanId(open.stream, open.key);
      const twin = this.#orphans.get(id);
      if (twin !== undefined) this.#close(twin, 'stream_ended');
      this.#orphans.set(id, { ...open, id, dueMs: nowMs + this.#options.maxWaitMs });
    }
  }

  /** Closes everything, for a shutdown. */
  flush(): void {
    for (const open of this.#lingering.values()) this.#close(open, undefined);
    for (const open of this.#waiting.values()) this.#close(open, 'end_not_seen');
    for (const open of this.#orphans.values()) this.#close(open, 'stream_ended');
  }

  /** Else all that is held would stay until the clock is where it was, and what comes after it in its queue too. */
  #clockSetBack(nowMs: number): void {
    const { lingerMs, maxWaitMs } = this.#options;
    for (const open of this.#lingering.values()) open.dueMs = Math.min(open.dueMs, nowMs + lingerMs);
    for (const queue of [this.#waiting, this.#orphans])
      for (const open of queue.values()) open.dueMs = Math.min(open.dueMs, nowMs + maxWaitMs);
  }

  /** What Envoy refuses before it sets the key (a malformed request, HTTP/1.0) has no attempt: its end says all. */
  #keyless(stream: JoinStream, entry: LogEntry): void {
    this.#sink.count('keyless');
    if (entry.type !== 'downstream_end' || entry.attemptCount !== 0) return;
    const { profile, reporter } = stream;
    const exchange = buildExchange({ profile, reporter, key: '', ends: [entry], tries: [], incomplete: undefined });
    this.#sink.exchange(exchange, stream.id);
  }

  #find(id: string): Open | undefined {
    return this.#waiting.get(id) ?? this.#lingering.get(id);
  }

  #open(id: string, stream: JoinStream, key: string, nowMs: number): Open {
    if (this.size >= this.#options.maxExchanges) this.#evict();
    const open: Open = { id, stream, key, ends: [], tries: [], dueMs: nowMs + this.#options.maxWaitMs };
    this.#waiting.set(id, open);
    return open;
  }

  #adopt(id: string, stream: JoinStream, key: string): Open | undefined {
    const open = this.#orphans.get(orphanId(stream, key));
    if (open === undefined) return undefined;
    this.#orphans.delete(open.id);
    this.#sink.count('adopted');
    const adopted = { ...open, id, stream };
    this.#waiting.set(id, adopted);
    return adopted;
  }

  #put(open: Open, entry: LogEntry, nowMs: number): void {
    const list = entry.type === 'upstream_end' ? open.tries : open.ends;
    if (list.some((known) => isSame(known, entry))) return this.#sink.count('doubled');
    if (list.length >= this.#options.maxAttempts) return this.#sink.count('refused');
    list.push(entry);
    if (entry.type === 'downstream_end' && !isRedirect(entry) && this.#waiting.delete(open.id)) {
      open.dueMs = nowMs + this.#options.lingerMs;
      this.#lingering.set(open.id, open);
    }
  }

  #evict(): void {
    const [oldest] = [this.#orphans, this.#waiting, this.#lingering].flatMap(
      (queue) => queue.values().next().value ?? [],
    );
    if (oldest === undefined) return;
    this.#sink.count('evicted');
    this.#close(oldest, this.#lingering.has(oldest.id) ? undefined : 'evicted');
  }

  #close(open: Open, incomplete: IncompleteReason | undefined): void {
    this.#waiting.delete(open.id);
    this.#lingering.delete(open.id);
    this.#orphans.delete(open.id);
    this.#closed.add(open.id);
    const { stream, key, ends, tries } = open;
    const exchange = buildExchange({
      profile: stream.profile,
      reporter: stream.reporter,
      key,
      ends,
      tries,
      incomplete,
    });
    this.#sink.exchange(exchange, stream.id);
  }
}

/** No stream's id, which is a number, begins like this. */
function orphanId(stream: JoinStream, key: string): string {
  return `@${stream.reporter.nodeId}|${key}`;
}
