import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';
import { SidelightError } from '../lib/errors.ts';
import type { ClusterView, DiscoveryView, SourceKind } from '../model/view.ts';
import { hostOfCluster } from './cluster-host.ts';
import { clusterView } from './cluster-view.ts';
import { createDnsQuery } from './dns-query.ts';
import { DnsSource } from './dns-source.ts';
import { FileClusters } from './file-clusters.ts';
import type { Knowledge } from './knowledge.ts';

export interface DiscoveryOptions {
  /** `undefined`: DNS is not asked. */
  dns:
    | {
        /** IP or IP:port; empty for the system's. */
        servers: readonly string[];
        /** Whether the proxies get the same answers; if not, no verdict comes of DNS. */
        sameResolverAsProxy: boolean;
        refreshMs: number;
        /** Per name server. */
        timeoutMs: number;
        staleAfterMs: number;
        maxHosts: number;
      }
    | undefined;
  /** `undefined`: there is none. `pollMs`: time between two looks at it. */
  file: { path: string; staleAfterMs: number; pollMs: number } | undefined;
  /** Clusters looked at on demand; further ones are not covered. */
  maxClusters: number;
  maxLeftPerCluster: number;
  /** What the config says of a cluster. */
  rule(cluster: string): { host: string | undefined; graceMs: number | undefined };
  now: Clock;
  onChange(change: EndpointChange): void;
  /** A failed round, a bad file, a bound that was reached. May come often: limit it where it is written. */
  onError(error: SidelightError): void;
}

/** Endpoints came or went, the first answer not counted. */
export interface EndpointChange {
  cluster: string;
  source: SourceKind;
  added: readonly string[];
  removed: readonly string[];
  /** Epoch ms, our clock. */
  atMs: number;
}

/** Which endpoints each cluster has and had, from a file and from DNS; for a cluster in both the file wins. */
export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #file: FileClusters | undefined;
  readonly #dns: DnsSource | undefined;
  /** Clusters without a name to ask for, or over a bound: remembered so that asking again is cheap. */
  readonly #uncovered: LRUCache<string, true>;
  readonly #clustersOfHost = new Map<string, string[]>();
  readonly #dnsViews = new Map<string, ClusterView>();
  readonly #view: DiscoveryView;
  readonly #toldFull = new Set<string>();

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#uncovered = new LRUCache({ max: options.maxClusters });
    this.#file = options.file && new FileClusters({ ...options, ...options.file });
    this.#dns = options.dns && this.#dnsSource(options.dns);
    this.#view = {
      cluster: (name) => this.#file?.view(name) ?? this.#dnsViews.get(name),
      clusters: () => this.#views(),
      proxy: () => undefined,
      proxies: () => [],
    };
  }

  /** Resolves when the file was looked at, so that its clusters are covered. A bad file is told by `onError`. */
  async start(): Promise<void> {
    await this.#file?.start();
  }

  /** A cluster carried traffic: from now on its endpoints are looked up. O(1) for a known cluster, never blocks. */
  watch(cluster: string): void {
    if (this.#dns === undefined || this.#dnsViews.has(cluster) || this.#uncovered.has(cluster)) return;
    if (this.#file?.view(cluster) !== undefined) return;
    const host = this.#options.rule(cluster).host ?? hostOfCluster(cluster);
    if (host === undefined || !this.#isRoomFor(cluster, host, this.#dns)) {
      this.#uncovered.set(cluster, true);
      return;
    }
    const sharing = this.#clustersOfHost.get(host) ?? [];
    sharing.push(cluster);
    this.#clustersOfHost.set(host, sharing);
    this.#setDnsView(cluster, host, this.#dns.knowledge(host));
  }

  /** The latest views, O(1). Each `ClusterView` is immutable; asking again gives a newer one. */
  snapshot(): DiscoveryView {
    return this.#view;
  }

  /** Ends all looking; nothing is called back after it. The views stay. */
  stop(): void {
    this.#file?.stop();
    this.#dns?.stop();
  }

  #dnsSource(dns: NonNullable<DiscoveryOptions['dns']>): DnsSource {
    return new DnsSource({
      query: createDnsQuery(dns),
      refreshMs: dns.refreshMs,
      maxHosts: dns.maxHosts,
      maxLeft: this.#options.maxLeftPerCluster,
      now: this.#options.now,
      onKnowledge: (host, knowledge, added, removed) => this.#dnsLearned(host, knowledge, added, removed),
      onFailure: (host, error) =>
        this.#options.onError(new SidelightError('dns_failed', { path: host, value: error, expected: 'addresses' })),
    });
  }

  #dnsLearned(host: string, knowledge: Knowledge, added: readonly string[], removed: readonly string[]): void {
    for (const cluster of this.#clustersOfHost.get(host) ?? []) {
      this.#setDnsView(cluster, host, knowledge);
      if (added.length + removed.length === 0 || this.#file?.view(cluster) !== undefined) continue;
      this.#options.onChange({
        cluster,
        source: 'dns',
        added,
        removed,
        atMs: knowledge.lastAnswerMs ?? this.#options.now(),
      });
    }
  }

  #setDnsView(cluster: string, host: string, knowledge: Knowledge): void {
    const { dns } = this.#options;
    if (dns === undefined) return;
    const settings = {
      staleAfterMs: dns.staleAfterMs,
      sameAsProxy: dns.sameResolverAsProxy,
      graceMs: this.#options.rule(cluster).graceMs,
    };
    this.#dnsViews.set(cluster, clusterView({ cluster, source: 'dns', subject: host }, knowledge, settings));
  }

  #views(): ClusterView[] {
    const fromFile = this.#file?.views() ?? [];
    const fromDns = [...this.#dnsViews.values()].filter(({ cluster }) => this.#file?.view(cluster) === undefined);
    return [...fromFile, ...fromDns];
  }

  #isRoomFor(cluster: string, host: string, dns: DnsSource): boolean {
    if (this.#dnsViews.size >= this.#options.maxClusters) {
      this.#tellFull('limits.clusters', this.#options.maxClusters, cluster);
      return false;
    }
    if (dns.watch(host)) return true;
    this.#tellFull('discovery.dns.maxHosts', this.#options.dns?.maxHosts ?? 0, host);
    return false;
  }

  #tellFull(bound: string, most: number, refused: string): void {
    if (this.#toldFull.has(bound)) return;
    this.#toldFull.add(bound);
    this.#options.onError(
      new SidelightError('bound_reached', { path: bound, value: refused, expected: `no more than ${most}` }),
    );
  }
}
