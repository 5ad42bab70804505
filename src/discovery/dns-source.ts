import type { Clock } from '../lib/clock.ts';
import type { Families } from './dns-answer.ts';
import type { DnsQuery } from './dns-query.ts';
import { readServers, type ServersMeaning } from './dns-servers.ts';
import { dnsGrace, type HeldTtl, holdTtl, noTtl } from './grace.ts';
import { type Answer, fail, type Knowledge, learn, nothingKnown } from './knowledge.ts';

/** All that is known of a name, as far as another run of this process can use it. */
export interface KnownHost {
  knowledge: Knowledge;
  /** By server: what holds of it while it fails. */
  families: ReadonlyMap<string, Families>;
  /** While the answer was the same. */
  ttl: HeldTtl;
}

/** What a round brought. */
export interface HostNews {
  host: string;
  knowledge: Knowledge;
  /** `undefined`: there was none; `knowledge.lastError` says why. */
  answer: Answer | undefined;
  /** Both empty where nothing changed. */
  added: readonly string[];
  removed: readonly string[];
}

export interface DnsSourceOptions {
  query: DnsQuery;
  /** The longest time between two rounds, ms; a shorter TTL shortens it. */
  refreshMs: number;
  /** Names asked for. */
  maxHosts: number;
  /** Endpoints remembered per name after they left. */
  maxLeft: number;
  /** What is known of a name before it is first asked for. */
  restored(host: string): KnownHost | undefined;
  now: Clock;
  /** After every round. */
  onNews(news: HostNews): void;
  /** A server failed, in words. */
  onFailure(host: string, error: string): void;
}

/** A TTL of 0 or 1 s must not make us a burden to the name server. */
const shortestRefreshMs = 500;

const unknownHost: KnownHost = { knowledge: nothingKnown, families: new Map(), ttl: noTtl };

/** Asks for names again and again, one loop per name. */
export class DnsSource {
  readonly #options: DnsSourceOptions;
  readonly #hosts = new Map<string, Host>();
  #stopped = false;

  constructor(options: DnsSourceOptions) {
    this.#options = options;
  }

  /** Begins to ask for a name, not before this turn of the event loop is over. False: there are too many names. */
  watch(name: string): boolean {
    if (this.#hosts.has(name)) return true;
    if (this.#stopped || this.#hosts.size >= this.#options.maxHosts) return false;
    const host = { name, known: this.#options.restored(name) ?? unknownHost, timer: undefined };
    this.#hosts.set(name, host);
    this.#askIn(host, 0);
    return true;
  }

  /** What is known of a watched name. */
  knowledge(name: string): Knowledge {
    return this.#hosts.get(name)?.known.knowledge ?? nothingKnown;
  }

  /** Every watched name. */
  hosts(): [name: string, known: KnownHost][] {
    return Array.from(this.#hosts.values(), ({ name, known }) => [name, known]);
  }

  /** Ends all loops; nothing is called back after it. */
  stop(): void {
    this.#stopped = true;
    for (const { timer } of this.#hosts.values()) clearTimeout(timer);
    this.#options.query.cancel();
  }

  #askIn(host: Host, delayMs: number): void {
    host.timer = setTimeout(() => void this.#round(host), delayMs).unref();
  }

  async #round(host: Host): Promise<void> {
    const asked = await this.#options.query.ask(host.name);
    if (this.#stopped) return;
    const read = readServers(host.known.families, asked);
    if (read.addresses === undefined) this.#fail(host, read);
    else this.#learn(host, read.addresses, read);
    if (read.error !== undefined) this.#options.onFailure(host.name, read.error);
    this.#askIn(host, this.#pauseMs(read));
  }

  #pauseMs({ doubt, ttlsMs }: ServersMeaning): number {
    const { refreshMs } = this.#options;
    const ttlMs = doubt === undefined ? Math.min(refreshMs, ...ttlsMs) : refreshMs;
    return Math.max(shortestRefreshMs, ttlMs);
  }

  #fail(host: Host, { families, error = 'no answer' }: ServersMeaning): void {
    const knowledge = fail(host.known.knowledge, error);
    host.known = { ...host.known, knowledge, families };
    this.#options.onNews({ host: host.name, knowledge, answer: undefined, added: [], removed: [] });
  }

  #learn(host: Host, endpoints: readonly string[], { families, doubt, ttlsMs }: ServersMeaning): void {
    const { refreshMs, maxLeft, now } = this.#options;
    const atMs = now();
    const ttlMs = Math.max(0, ...ttlsMs);
    const ttl = ttlsMs.length === 0 ? host.known.ttl : holdTtl(host.known.ttl, ttlMs, atMs);
    // What a proxy may still believe is the answer before this one, so its TTL counts too.
    const answer = { endpoints, atMs, grace: dnsGrace(ttl.longestMs, refreshMs), doubt };
    const { knowledge, added, removed } = learn(host.known.knowledge, answer, maxLeft);
    const same = added.length + removed.length === 0;
    host.known = { knowledge, families, ttl: same ? ttl : holdTtl(noTtl, ttlMs, atMs) };
    this.#options.onNews({ host: host.name, knowledge, answer, added, removed });
  }
}

interface Host {
  readonly name: string;
  known: KnownHost;
  timer: NodeJS.Timeout | undefined;
}
