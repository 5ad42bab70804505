import type { Clock } from '../../lib/clock.ts';
import { SidelightError } from '../../lib/errors.ts';
import { listsEndpoints, type ProxyView } from '../../model/view.ts';
import { fileGrace } from '../grace.ts';
import { fail, type Knowledge, type Learned, learn, nothingKnown } from '../knowledge.ts';
import { createAdminClient } from './admin-client.ts';
import { type Identity, Questions, withFurther } from './questions.ts';
import { type ListedCluster, statNameOf } from './read-clusters.ts';
import type { ClusterFacts } from './read-facts.ts';

export interface AdminTargetOptions {
  url: string;
  refreshMs: number;
  timeoutMs: number;
  staleAfterMs: number;
  maxLeft: number;
  /** Whether a better source speaks for the cluster: then only the proxy's own view is kept. */
  isCovered(cluster: string): boolean;
  now: Clock;
  /** Before anything is asked of an Envoy, and when another one answers at the address. False: it is not to be asked. */
  onIdentity(identity: Identity): boolean;
  onLearned(cluster: string, learned: Learned, atMs: number): void;
  onError(error: SidelightError): void;
}

/** A cluster that this proxy reported. */
interface WatchedCluster {
  facts: ClusterFacts | undefined;
  statName: string;
  view: ProxyView | undefined;
  /** The proxy's list as if it were the world's. */
  knowledge: Knowledge;
}

/** Who answers, what the configs say and the runtime flag are asked for again after so long. */
const factsMs = 300_000;
/** An Envoy that gives more than this unasked is asked seldom. */
const heavyBytes = 1024 * 1024;

/** One admin interface, asked in turns. A failure is told and changes nothing but the age of what is known. */
export class AdminTarget {
  readonly #options: AdminTargetOptions;
  readonly #client: ReturnType<typeof createAdminClient>;
  readonly #questions: Questions;
  readonly #clusters = new Map<string, WatchedCluster>();
  #identity: Identity | undefined;
  #newDns: boolean | undefined;
  #uptimeSeconds = 0;
  /** When who answers was last asked; 0: it must be asked now. */
  #identifiedMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: AdminTargetOptions) {
    this.#options = options;
    this.#client = createAdminClient(options);
    this.#questions = new Questions(options.url, this.#client);
  }

  start(delayMs: number): void {
    this.#timer = setTimeout(() => void this.#turn(), delayMs).unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#client.cancel();
  }

  get url(): string {
    return this.#options.url;
  }

  get size(): number {
    return this.#clusters.size;
  }

  has(cluster: string): boolean {
    return this.#clusters.has(cluster);
  }

  watch(name: string): void {
    this.#clusters.set(name, {
      facts: undefined,
      statName: statNameOf(name),
      view: undefined,
      knowledge: nothingKnown,
    });
  }

  view(cluster: string): ProxyView | undefined {
    return this.#clusters.get(cluster)?.view;
  }

  *views(): Generator<ProxyView> {
    for (const { view } of this.#clusters.values()) if (view !== undefined) yield view;
  }

  /** `undefined`: the proxy has no list of its endpoints. */
  knowledge(cluster: string): Knowledge | undefined {
    const watched = this.#clusters.get(cluster);
    return listsEndpoints(watched?.facts?.type) ? watched?.knowledge : undefined;
  }

  clusters(): Iterable<string> {
    return this.#clusters.keys();
  }

  async #turn(): Promise<void> {
    let pauseMs = this.#options.refreshMs;
    try {
      const identity = await this.#identify();
      if (identity === undefined) pauseMs = this.#options.staleAfterMs;
      else if (this.#clusters.size > 0) pauseMs = await this.#look(identity);
    } catch (error) {
      if (!this.#stopped) this.#failed(error);
    }
    if (!this.#stopped) this.start(pauseMs);
  }

  /** `undefined`: this Envoy is not to be asked. */
  async #identify(): Promise<Identity | undefined> {
    const nowMs = this.#options.now();
    const known = this.#identity;
    const fresh = this.#identifiedMs <= nowMs && nowMs < this.#identifiedMs + factsMs;
    if (known !== undefined && fresh) return known;
    const identity = await this.#questions.identity();
    // What another process answered before is not this one's.
    if (known !== undefined && known.nodeId !== identity.nodeId) this.#clusters.clear();
    this.#identity = undefined;
    if (this.#stopped || !this.#options.onIdentity(identity)) return undefined;
    this.#newDns = await this.#questions.newDnsImplementation();
    for (const cluster of this.#clusters.values()) cluster.facts = undefined;
    this.#identity = identity;
    this.#identifiedMs = nowMs;
    return identity;
  }

  /** The pause until the next turn. */
  async #look(identity: Identity): Promise<number> {
    const names = [...this.#clusters.keys()];
    await this.#learnFacts(names);
    const askedMs = this.#options.now();
    // Both sides of the hosts' own numbers: if no connection was opened between, each number can only have become less.
    const before = await this.#counts(names);
    const { listed, unaskedBytes } = await this.#questions.hosts(names);
    for (const [name, { statName }] of listed) this.#watched(name).statName = statName;
    const after = await this.#counts(names);
    const further = await this.#questions.furtherAddresses(names.map((name) => this.#edsName(name)));
    if (this.#stopped) return 0;
    const atMs = this.#options.now();
    for (const name of names) {
      const hosts = withFurther(listed.get(name)?.hosts ?? new Map(), further.get(this.#edsName(name)));
      const counts = countsBetween(before.get(name), after.get(name));
      this.#know(name, listed.get(name), { identity, hosts, ...counts, askedMs, atMs });
    }
    return unaskedBytes > heavyBytes
      ? Math.max(this.#options.refreshMs, this.#options.staleAfterMs / 2)
      : this.#options.refreshMs;
  }

  async #learnFacts(names: readonly string[]): Promise<void> {
    const unknown = names.filter((name) => this.#watched(name).facts === undefined);
    if (unknown.length === 0) return;
    for (const [name, facts] of await this.#questions.facts(unknown))
      if (this.#clusters.has(name)) this.#watched(name).facts = facts;
  }

  /** Each cluster's connections. */
  async #counts(names: readonly string[]): Promise<Map<string, Counts>> {
    const nameOf = (name: string, what: keyof Counts) => `cluster.${this.#watched(name).statName}.upstream_cx_${what}`;
    const wanted = names.flatMap((name) => [nameOf(name, 'active'), nameOf(name, 'total')]);
    const numbers = await this.#questions.numbers([uptime, ...wanted]);
    const uptimeSeconds = numbers.get(uptime) ?? 0;
    // It was started anew between two turns: who it is, and its config, may be others.
    if (uptimeSeconds < this.#uptimeSeconds) this.#identifiedMs = 0;
    this.#uptimeSeconds = uptimeSeconds;
    return new Map(
      names.map((name) => [
        name,
        { active: numbers.get(nameOf(name, 'active')), total: numbers.get(nameOf(name, 'total')) },
      ]),
    );
  }

  #know(
    name: string,
    listed: ListedCluster | undefined,
    seen: Pick<ProxyView, 'hosts' | 'activeConnections' | 'openedMeanwhile'> & {
      identity: Identity;
      askedMs: number;
      atMs: number;
    },
  ): void {
    const cluster = this.#watched(name);
    if (listed === undefined) {
      this.#doubt(cluster, 'the proxy has no such cluster');
      return;
    }
    const { hosts, activeConnections, openedMeanwhile, identity, askedMs, atMs } = seen;
    cluster.view = {
      ...identity,
      cluster: name,
      subject: this.#options.url,
      type: cluster.facts?.type,
      hosts,
      activeConnections,
      openedMeanwhile,
      idleTimeoutMs: cluster.facts?.idleTimeoutMs,
      closesOnHostSetChange: cluster.facts?.closesOnHostSetChange === true,
      ignoresHealthOnRemoval: cluster.facts?.ignoresHealthOnRemoval === true,
      maxConnectionDurationMs: cluster.facts?.maxConnectionDurationMs,
      newDnsImplementation: this.#newDns,
      lastAnswerMs: askedMs,
      staleAfterMs: this.#options.staleAfterMs,
      lastError: undefined,
    };
    if (this.#options.isCovered(name) || !listsEndpoints(cluster.facts?.type)) {
      cluster.knowledge = nothingKnown;
      return;
    }
    const endpoints = [...hosts].flatMap(([endpoint, { pendingRemoval }]) => (pendingRemoval ? [] : [endpoint]));
    const learned = learn(cluster.knowledge, { endpoints, atMs, grace: fileGrace }, this.#options.maxLeft);
    cluster.knowledge = learned.knowledge;
    this.#options.onLearned(name, learned, atMs);
  }

  #failed(error: unknown): void {
    const told = error instanceof SidelightError ? error : new SidelightError('internal', { cause: error });
    this.#identifiedMs = 0;
    for (const cluster of this.#clusters.values()) this.#doubt(cluster, told.message);
    this.#options.onError(told);
  }

  #doubt(cluster: WatchedCluster, error: string): void {
    if (cluster.view !== undefined) cluster.view = { ...cluster.view, lastError: error };
    cluster.knowledge = fail(cluster.knowledge, error);
  }

  #watched(name: string): WatchedCluster {
    const cluster = this.#clusters.get(name);
    if (cluster === undefined) throw new Error(`${name} is not watched`);
    return cluster;
  }

  #edsName(name: string): string {
    return this.#clusters.get(name)?.facts?.edsName ?? name;
  }
}

const uptime = 'server.uptime';

/** A cluster's statistics; absent where Envoy does not keep them. */
interface Counts {
  /** Open now. */
  active: number | undefined;
  /** Ever opened. */
  total: number | undefined;
}

const notKept: Counts = { active: undefined, total: undefined };

function countsBetween(
  before: Counts = notKept,
  after: Counts = notKept,
): Pick<ProxyView, 'activeConnections' | 'openedMeanwhile'> {
  const isKept = before.active !== undefined && after.active !== undefined;
  return {
    activeConnections: isKept ? Math.max(before.active ?? 0, after.active ?? 0) : undefined,
    openedMeanwhile: before.total === undefined || before.total !== after.total,
  };
}
