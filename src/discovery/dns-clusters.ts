import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';
import { SidelightError } from '../lib/errors.ts';
import type { ClusterView } from '../model/view.ts';
import { Bounds } from './bounds.ts';
import type { ClusterSettings, EndpointChange } from './change.ts';
import { hostOfCluster } from './cluster-host.ts';
import { clusterView } from './cluster-view.ts';
import { createDnsQuery, type DnsQueryOptions } from './dns-query.ts';
import { DnsSource, type HostNews, type KnownHost } from './dns-source.ts';
import type { Knowledge } from './knowledge.ts';
import { holdWindow, openWindow, slideWindow, type Windowed } from './window.ts';

export interface DnsClustersOptions extends DnsQueryOptions {
  /** Whether the proxies get the same answers; if not, no verdict comes of DNS. */
  sameResolverAsProxy: boolean;
  refreshMs: number;
  staleAfterMs: number;
  maxHosts: number;
  maxClusters: number;
  maxLeftPerCluster: number;
  rule(cluster: string): ClusterSettings;
  restored(host: string): KnownHost | undefined;
  now: Clock;
  /** Called for every change; the reader leaves out what another source covers. */
  onChange(change: EndpointChange): void;
  onError(error: SidelightError): void;
}

/** A cluster and the name that it is asked by. */
interface Cluster {
  readonly name: string;
  readonly host: string;
  /** Of a cluster with a window. */
  windowed: Windowed | undefined;
  view: ClusterView;
}

/** The clusters that carried traffic and have a name, each with its own grace and window; a name is asked for once. */
export class DnsClusters {
  readonly #options: DnsClustersOptions;
  readonly #source: DnsSource;
  readonly #clusters = new Map<string, Cluster>();
  readonly #clustersOfHost = new Map<string, Cluster[]>();
  /** Clusters without a name to ask for, or over a bound: remembered so that asking again is cheap. */
  readonly #uncovered: LRUCache<string, true>;
  readonly #bounds: Bounds;

  constructor(options: DnsClustersOptions) {
    this.#options = options;
    this.#bounds = new Bounds((error) => options.onError(error));
    this.#uncovered = new LRUCache({ max: options.maxClusters });
    this.#source = new DnsSource({
      query: createDnsQuery(options),
      refreshMs: options.refreshMs,
      maxHosts: options.maxHosts,
      maxLeft: options.maxLeftPerCluster,
      restored: (host) => options.restored(host),
      now: options.now,
      onNews: (news) => this.#heard(news),
      onFailure: (host, error) =>
        options.onError(new SidelightError('dns_failed', { path: host, value: error, expected: 'addresses' })),
    });
  }

  /** O(1) for a known cluster, never blocks. */
  watch(name: string): void {
    if (this.#clusters.has(name) || this.#uncovered.has(name)) return;
    const host = this.#options.rule(name).host ?? hostOfCluster(name);
    if (host === undefined || !this.#isRoomFor(name, host)) {
      this.#uncovered.set(name, true);
      return;
    }
    const known = this.#source.knowledge(host);
    const { windowMs } = this.#options.rule(name);
    const windowed = windowMs > 0 ? openWindow(known, windowMs) : undefined;
    const cluster = { name, host, windowed, view: this.#viewOf({ name, host, windowed }, known) };
    this.#clusters.set(name, cluster);
    const sharing = this.#clustersOfHost.get(host) ?? [];
    sharing.push(cluster);
    this.#clustersOfHost.set(host, sharing);
  }

  view(cluster: string): ClusterView | undefined {
    return this.#clusters.get(cluster)?.view;
  }

  views(): ClusterView[] {
    return Array.from(this.#clusters.values(), ({ view }) => view);
  }

  hosts(): [name: string, known: KnownHost][] {
    return this.#source.hosts();
  }

  stop(): void {
    this.#source.stop();
  }

  #heard({ host, knowledge, answer, added, removed }: HostNews): void {
    for (const cluster of this.#clustersOfHost.get(host) ?? []) {
      cluster.windowed &&= this.#windowAfter(cluster.windowed, cluster.name, answer, knowledge.lastError);
      cluster.view = this.#viewOf(cluster, knowledge);
      if (answer === undefined || added.length + removed.length === 0) continue;
      this.#options.onChange({ cluster: cluster.name, source: 'dns', added, removed, atMs: answer.atMs });
    }
  }

  #windowAfter(before: Windowed, cluster: string, answer: HostNews['answer'], error = 'no answer'): Windowed {
    if (answer === undefined) return holdWindow(before, error);
    const { windowMs } = this.#options.rule(cluster);
    return slideWindow(before, answer, windowMs, this.#options.maxLeftPerCluster);
  }

  #viewOf({ name, host, windowed }: Omit<Cluster, 'view'>, known: Knowledge): ClusterView {
    const { staleAfterMs, sameResolverAsProxy: sameAsProxy } = this.#options;
    // What answers brought and took is counted, also where a window hides it.
    const shown = windowed === undefined ? known : { ...windowed.knowledge, changes: known.changes };
    const { graceMs } = this.#options.rule(name);
    return clusterView({ cluster: name, source: 'dns', subject: host }, shown, { staleAfterMs, sameAsProxy, graceMs });
  }

  #isRoomFor(cluster: string, host: string): boolean {
    const { maxClusters, maxHosts } = this.#options;
    if (this.#clusters.size >= maxClusters) return this.#bounds.reached('limits.clusters', maxClusters, cluster);
    return this.#source.watch(host) || this.#bounds.reached('discovery.dns.maxHosts', maxHosts, host);
  }
}
