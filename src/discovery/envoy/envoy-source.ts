import type { Clock } from '../../lib/clock.ts';
import { SidelightError } from '../../lib/errors.ts';
import type { ClusterView, ProxyView } from '../../model/view.ts';
import type { ClusterSettings, EndpointChange } from '../change.ts';
import { clusterView } from '../cluster-view.ts';
import type { Learned } from '../knowledge.ts';
import { failure } from './admin-client.ts';
import { AdminTarget } from './admin-target.ts';
import type { Identity } from './questions.ts';

export interface EnvoySourceOptions {
  /** Of admin interfaces, `http://HOST:PORT`. */
  urls: readonly string[];
  refreshMs: number;
  /** Per question. */
  timeoutMs: number;
  staleAfterMs: number;
  /** Per proxy. */
  maxClusters: number;
  maxLeftPerCluster: number;
  rule(cluster: string): Pick<ClusterSettings, 'graceMs'>;
  /** Whether a better source speaks for the cluster. */
  isCovered(cluster: string): boolean;
  now: Clock;
  onChange(change: EndpointChange): void;
  onError(error: SidelightError): void;
}

/** So that a thousand interfaces are not all asked in one moment. */
const longestStaggerMs = 50;
/** Reports of nodes that have not answered yet. */
const maxEarlyPairs = 10_000;

/** What proxies themselves list, each asked for the clusters that it reported. None can hold up or empty another. */
export class EnvoySource {
  readonly #options: EnvoySourceOptions;
  readonly #targets: readonly AdminTarget[];
  readonly #ofNode = new Map<string, AdminTarget>();
  readonly #nodeOf = new Map<AdminTarget, string>();
  readonly #toldFull = new Set<AdminTarget>();
  /** What nodes reported before it was known at which address they answer. */
  readonly #early = new Map<string, Set<string>>();
  #earlyPairs = 0;

  constructor(options: EnvoySourceOptions) {
    this.#options = options;
    this.#targets = options.urls.map((url) => this.#target(url));
  }

  start(): void {
    const { urls, refreshMs } = this.#options;
    const staggerMs = Math.min(longestStaggerMs, refreshMs / Math.max(1, urls.length));
    this.#targets.forEach((target, i) => target.start(i * staggerMs));
  }

  stop(): void {
    for (const target of this.#targets) target.stop();
  }

  /** This node reported the cluster. Nothing where its admin interface is not known. O(1). */
  watch(cluster: string, nodeId: string): void {
    const target = this.#ofNode.get(nodeId);
    if (target === undefined) this.#remember(cluster, nodeId);
    else if (!target.has(cluster)) this.#watchAt(target, cluster);
  }

  proxy(cluster: string, nodeId: string): ProxyView | undefined {
    return this.#ofNode.get(nodeId)?.view(cluster);
  }

  proxies(): ProxyView[] {
    return [...this.#ofNode.values()].flatMap((target) => [...target.views()]);
  }

  /** A proxy's list in the place of the world's. Without a node id: that of any proxy, of one that still answers if there is. */
  view(cluster: string, nodeId: string | undefined): ClusterView | undefined {
    if (nodeId !== undefined) return this.#viewOf(cluster, this.#ofNode.get(nodeId));
    const watching = this.#targets.filter((target) => target.has(cluster));
    return this.#viewOf(cluster, watching.find((target) => this.#answersFor(cluster, target)) ?? watching[0]);
  }

  /** Every cluster that no better source speaks for, once, as `view` without a node id gives it. */
  views(): ClusterView[] {
    const chosen = new Map<string, AdminTarget>();
    for (const target of this.#targets) {
      for (const cluster of target.clusters()) {
        const before = chosen.get(cluster);
        if (before === undefined ? this.#options.isCovered(cluster) : this.#answersFor(cluster, before)) continue;
        if (before === undefined || this.#answersFor(cluster, target)) chosen.set(cluster, target);
      }
    }
    return [...chosen].flatMap(([cluster, target]) => this.#viewOf(cluster, target) ?? []);
  }

  #answersFor(cluster: string, target: AdminTarget): boolean {
    const lastAnswerMs = target.knowledge(cluster)?.lastAnswerMs;
    return lastAnswerMs !== undefined && lastAnswerMs >= this.#options.now() - this.#options.staleAfterMs;
  }

  #watchAt(target: AdminTarget, cluster: string): void {
    if (target.size < this.#options.maxClusters) target.watch(cluster);
    else this.#tellFull(target, cluster);
  }

  #remember(cluster: string, nodeId: string): void {
    if (this.#earlyPairs >= maxEarlyPairs || this.#nodeOf.size === this.#targets.length) return;
    const clusters = this.#early.get(nodeId) ?? new Set();
    if (clusters.has(cluster)) return;
    this.#early.set(nodeId, clusters.add(cluster));
    this.#earlyPairs += 1;
  }

  #target(url: string): AdminTarget {
    const target: AdminTarget = new AdminTarget({
      ...this.#options,
      url,
      maxLeft: this.#options.maxLeftPerCluster,
      onIdentity: (identity) => this.#answers(target, url, identity),
      onLearned: (cluster, learned, atMs) => this.#learned(target, cluster, learned, atMs),
    });
    return target;
  }

  #answers(target: AdminTarget, url: string, { nodeId }: Identity): boolean {
    const before = this.#nodeOf.get(target);
    if (before !== undefined && before !== nodeId) this.#ofNode.delete(before);
    const other = this.#ofNode.get(nodeId);
    if (other !== undefined && other !== target) {
      this.#nodeOf.delete(target);
      this.#options.onError(failure(url, { value: nodeId, expected: 'a node id that no other Envoy has' }));
      return false;
    }
    this.#ofNode.set(nodeId, target);
    this.#nodeOf.set(target, nodeId);
    const early = this.#early.get(nodeId) ?? new Set();
    this.#early.delete(nodeId);
    this.#earlyPairs -= early.size;
    for (const cluster of early) this.#watchAt(target, cluster);
    return true;
  }

  #learned(target: AdminTarget, cluster: string, { added, removed }: Learned, atMs: number): void {
    const nodeId = this.#nodeOf.get(target);
    if (nodeId === undefined || added.length + removed.length === 0) return;
    this.#options.onChange({ cluster, source: 'envoy', nodeId, added, removed, atMs });
  }

  #viewOf(cluster: string, target: AdminTarget | undefined): ClusterView | undefined {
    const knowledge = target?.knowledge(cluster);
    if (target === undefined || knowledge === undefined) return undefined;
    const settings = {
      staleAfterMs: this.#options.staleAfterMs,
      sameAsProxy: true,
      graceMs: this.#options.rule(cluster).graceMs,
    };
    return clusterView({ cluster, source: 'envoy', subject: target.url }, knowledge, settings);
  }

  #tellFull(target: AdminTarget, cluster: string): void {
    if (this.#toldFull.has(target)) return;
    this.#toldFull.add(target);
    const expected = `no more than ${this.#options.maxClusters} of one proxy`;
    this.#options.onError(new SidelightError('bound_reached', { path: 'limits.clusters', value: cluster, expected }));
  }
}
