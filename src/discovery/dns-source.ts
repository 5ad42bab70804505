import type { Clock } from '../lib/clock.ts';
import { type Families, noFamilies, readRound } from './dns-answer.ts';
import type { DnsQuery } from './dns-query.ts';
import { dnsGrace } from './grace.ts';
import { fail, type Knowledge, learn, nothingKnown } from './knowledge.ts';

export interface DnsSourceOptions {
  query: DnsQuery;
  /** The longest time between two rounds, ms; a shorter TTL shortens it. */
  refreshMs: number;
  /** Names asked for. */
  maxHosts: number;
  /** Endpoints remembered per name after they left. */
  maxLeft: number;
  now: Clock;
  /** After every round. `added` and `removed` are empty where nothing changed. */
  onKnowledge(host: string, knowledge: Knowledge, added: readonly string[], removed: readonly string[]): void;
  /** A round that was no good answer. */
  onFailure(host: string, error: string): void;
}

/** A TTL of 0 or 1 s must not make us a burden to the name server. */
const shortestRefreshMs = 500;

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
    const host = { name, knowledge: nothingKnown, families: noFamilies, ttlMs: 0, timer: undefined };
    this.#hosts.set(name, host);
    this.#askIn(host, 0);
    return true;
  }

  /** What is known of a watched name. */
  knowledge(name: string): Knowledge {
    return this.#hosts.get(name)?.knowledge ?? nothingKnown;
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
    const round = await this.#options.query.ask(host.name);
    if (this.#stopped) return;
    const meaning = readRound(host.families, round);
    host.families = meaning.families;
    if (meaning.good) {
      this.#learn(host, meaning.addresses, meaning.ttlMs);
    } else {
      host.knowledge = fail(host.knowledge, meaning.error);
      this.#options.onKnowledge(host.name, host.knowledge, [], []);
      this.#options.onFailure(host.name, meaning.error);
    }
    const ttlMs = meaning.good ? (meaning.ttlMs ?? this.#options.refreshMs) : this.#options.refreshMs;
    this.#askIn(host, Math.max(shortestRefreshMs, Math.min(ttlMs, this.#options.refreshMs)));
  }

  #learn(host: Host, addresses: readonly string[], ttlMs = 0): void {
    const { refreshMs, maxLeft } = this.#options;
    const atMs = this.#options.now();
    // What a proxy may still believe is the answer before this one, so its TTL counts too.
    const grace = dnsGrace(Math.max(host.ttlMs, ttlMs), refreshMs);
    const learned = learn(host.knowledge, { endpoints: addresses, atMs, grace }, maxLeft);
    host.knowledge = learned.knowledge;
    host.ttlMs = ttlMs;
    this.#options.onKnowledge(host.name, learned.knowledge, learned.added, learned.removed);
  }
}

interface Host {
  readonly name: string;
  knowledge: Knowledge;
  families: Families;
  /** Of the last good answer. */
  ttlMs: number;
  timer: NodeJS.Timeout | undefined;
}
