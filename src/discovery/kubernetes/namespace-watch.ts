import type { Clock } from '../../lib/clock.ts';
import type { SidelightError } from '../../lib/errors.ts';
import { type ApiClient, failure, isExpired } from './api-client.ts';
import { startDeadline } from './deadline.ts';
import { type Slice, serviceLabel } from './slice.ts';
import { readEvent, readPage } from './watch-events.ts';

export interface NamespaceWatchOptions {
  namespace: string;
  client: ApiClient;
  /** After so long the server is to end a watch, ms: a quiet one proves itself by the next one's answer. */
  watchMs: number;
  now: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  /** All slices of these services. */
  onList(services: ReadonlySet<string>, slices: readonly Slice[], seen: { atMs: number; fromMs: number }): void;
  onSlice(slice: Slice, gone: boolean, seen: { atMs: number; fromMs: number }): void;
  /** The server proved that nothing is missing. */
  onAlive(atMs: number): void;
  onError(error: SidelightError): void;
}

/** More services than this are not named in a selector (a URL has its bounds): then all slices come, and others are dropped. */
const mostNamed = 60;
const pageSize = 100;
/** Several clusters begin to carry traffic at once: they are asked for together. */
const settleMs = 50;
/** A namespace whose services come one by one is not listed anew for each of them. */
const restartMs = 2000;
/** Nor is a crowded one busy with nothing else: 20,000 slices take 8 s and 5 s of CPU. */
const restartPerList = 4;
/** What a watch tells at once is what happened before it began. */
const backlogMs = 1000;
/** After the server should have ended a watch, ms. */
const lateMs = 5000;
const shortestPauseMs = 500;
const longestPauseMs = 15_000;

/** Lists and then watches the slices of the watched services of one namespace, for as long as it is not stopped. */
export class NamespaceWatch {
  readonly #options: NamespaceWatchOptions;
  readonly #services = new Set<string>();
  readonly #stopping = new AbortController();
  /** Ends the round that runs, because more services are watched. */
  #round = new AbortController();
  #restart: NodeJS.Timeout | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;
  /** Which services the round that runs asks for. */
  #asked: ReadonlySet<string> = new Set();
  /** From which version on to watch; `undefined`: a list is needed. */
  #version: string | undefined;
  /** When the server last proved that nothing was missing. */
  #heardMs = 0;
  #failures = 0;
  #isListing = false;
  /** How long the last list took. */
  #listMs = 0;

  constructor(options: NamespaceWatchOptions) {
    this.#options = options;
  }

  /** Begins to watch a service, a moment later. */
  add(service: string): void {
    if (this.#services.size === 0) void this.#run();
    this.#services.add(service);
    this.#restartSoon();
  }

  #restartSoon(): void {
    const leastMs = Math.max(restartMs, this.#listMs * restartPerList);
    const waitMs = Math.max(settleMs, this.#startedMs + leastMs - this.#options.now());
    this.#restart ??= setTimeout(() => this.#startAnew(), waitMs).unref();
  }

  stop(): void {
    clearTimeout(this.#restart);
    this.#stopping.abort();
    this.#round.abort();
  }

  #startAnew(): void {
    this.#restart = undefined;
    if (this.#isListing) {
      // Given up again and again, a long list would never end.
      this.#restart = setTimeout(() => this.#startAnew(), restartMs).unref();
      return;
    }
    this.#startedMs = this.#options.now();
    this.#asked = new Set(this.#services);
    this.#version = undefined;
    this.#round.abort();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped()) {
      this.#round = new AbortController();
      const { signal } = this.#round;
      const beganMs = this.#options.now();
      try {
        if (this.#asked.size > 0) await this.#listAndWatch(signal);
        this.#failures = 0;
        const leastMs = this.#asked.size > 0 ? shortestPauseMs : longestPauseMs;
        await pause(signal, beganMs + leastMs - this.#options.now());
      } catch (error) {
        if (signal.aborted) continue;
        this.#failed(error);
        await pause(signal, this.#backOffMs());
      }
    }
  }

  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    if (this.#version === undefined) {
      const beganMs = this.#options.now();
      this.#isListing = true;
      try {
        this.#version = await this.#list(signal);
      } finally {
        this.#isListing = false;
        this.#listMs = this.#options.now() - beganMs;
      }
    }
    await this.#watch(this.#version, signal);
  }

  async #list(signal: AbortSignal): Promise<string> {
    const asked = this.#asked;
    const fromMs = this.#heardMs;
    const slices: Slice[] = [];
    let next: string | undefined;
    let version: string;
    do {
      const page = readPage(
        await this.#options.client.get(this.#path({ limit: `${pageSize}`, continue: next }), signal),
      );
      for (const slice of page.slices) if (asked.has(slice.service)) slices.push(slice);
      ({ version, next } = page);
    } while (next !== undefined);
    if (signal.aborted) throw new Error('given up');
    this.#heardMs = this.#options.now();
    this.#options.onList(asked, slices, { atMs: this.#heardMs, fromMs });
    return version;
  }

  async #watch(version: string, round: AbortSignal): Promise<void> {
    const { client, watchMs, now } = this.#options;
    const seconds = Math.ceil(watchMs / 1000);
    const path = this.#path({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: version,
      timeoutSeconds: `${seconds}`,
    });
    // A connection that is only half there never ends by itself.
    const end = startDeadline(seconds * 1000 + lateMs, `the watch did not end after ${seconds} s`);
    const signal = AbortSignal.any([round, end.signal]);
    const heardMs = this.#heardMs;
    let beganMs = now();
    let settled: NodeJS.Timeout | undefined;
    const begun = () => {
      beganMs = now();
      // What happened meanwhile, or that it is forgotten, would have been told by then.
      settled = setTimeout(() => this.#alive(), backlogMs).unref();
    };
    try {
      for await (const line of client.lines(path, signal, begun)) {
        if (round.aborted) return;
        const atMs = now();
        this.#event(line, { atMs, fromMs: atMs < beganMs + backlogMs ? heardMs : atMs - backlogMs });
        if (this.#version === undefined) return;
        this.#alive();
      }
      this.#alive();
    } catch (error) {
      throw end.reasonOf(error);
    } finally {
      end.met();
      clearTimeout(settled);
    }
  }

  #event(line: unknown, seen: { atMs: number; fromMs: number }): void {
    const event = readEvent(line);
    if (event.kind === 'error') throw new Error(event.message);
    if (event.kind === 'expired') {
      this.#version = undefined;
      return;
    }
    this.#version = event.version;
    if (event.kind === 'slice' && this.#asked.has(event.slice.service))
      this.#options.onSlice(event.slice, event.gone, seen);
  }

  #alive(): void {
    this.#heardMs = this.#options.now();
    this.#options.onAlive(this.#heardMs);
  }

  #failed(error: unknown): void {
    this.#failures += 1;
    if (isExpired(error)) this.#version = undefined;
    this.#options.onError(failure(this.#path({}), error));
  }

  #backOffMs(): number {
    const pauseMs = Math.min(longestPauseMs, shortestPauseMs * 2 ** Math.min(this.#failures - 1, 10));
    return pauseMs * (0.5 + this.#options.random() / 2);
  }

  #path(query: Record<string, string | undefined>): string {
    const search = new URLSearchParams();
    const { namespace } = this.#options;
    const named = this.#asked.size > mostNamed ? serviceLabel : `${serviceLabel} in (${[...this.#asked].join(',')})`;
    for (const [key, value] of Object.entries({ labelSelector: named, ...query }))
      if (value !== undefined) search.set(key, value);
    return `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?${search.toString()}`;
  }
}

/** Resolves after that time, or when it is given up. */
async function pause(signal: AbortSignal, pauseMs: number): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(resolve, Math.max(0, pauseMs), undefined).unref();
  signal.addEventListener('abort', resolve, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', resolve);
}
