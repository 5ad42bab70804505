import type { Clock } from '../lib/clock.ts';
import type { SidelightError } from '../lib/errors.ts';
import type { ClusterView, DiscoveryView, SourceKind } from '../model/view.ts';
import type { ClusterSettings, EndpointChange } from './change.ts';
import { DnsClusters } from './dns-clusters.ts';
import { EnvoySource } from './envoy/envoy-source.ts';
import { FileClusters } from './file-clusters.ts';
import type { AccessSource } from './kubernetes/access.ts';
import { KubernetesClusters } from './kubernetes/kubernetes-clusters.ts';
import { Restored } from './restored.ts';
import type { SavedSubject } from './saved.ts';

export interface DiscoveryOptions {
  /** `undefined`: no API server is asked. */
  kubernetes:
    | {
        access: AccessSource;
        /** The only ones that are asked for; `undefined`: any. */
        namespaces: readonly string[] | undefined;
        /** The longest time that one watch lasts. */
        watchMs: number;
        /** Until an answer begins, and for a page of a list. */
        timeoutMs: number;
        staleAfterMs: number;
      }
    | undefined;
  /** `undefined`: DNS is not asked. */
  dns:
    | {
        /** IP or IP:port; empty for the system's. */
        servers: readonly string[];
        /** `first`: the first server that answers. `all`: each of them, and the list is everything that any of them lists. */
        ask: 'first' | 'all';
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
  /** Admin interfaces of proxies, `http://HOST:PORT`; none: no proxy is asked. `timeoutMs`: per question. */
  envoyAdmin: { urls: readonly string[]; refreshMs: number; timeoutMs: number; staleAfterMs: number };
  /** Clusters looked at on demand, by DNS and per proxy; further ones are not covered. */
  maxClusters: number;
  maxLeftPerCluster: number;
  /** What the config says of a cluster. */
  rule(cluster: string): ClusterSettings;
  /** What `state()` of an earlier run gave. Each subject is used when it is looked at again. */
  restored: readonly SavedSubject[];
  now: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  onChange(change: EndpointChange): void;
  /** A failed round, a bad file, a bound that was reached. May come often: limit it where it is written. */
  onError(error: SidelightError): void;
}

/** Which endpoints each cluster has and had: from a file, else from Kubernetes, else from DNS, else from the proxies themselves. */
export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #restored: Restored;
  readonly #file: FileClusters | undefined;
  readonly #kubernetes: KubernetesClusters | undefined;
  readonly #dns: DnsClusters | undefined;
  readonly #envoy: EnvoySource;
  readonly #view: DiscoveryView;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#restored = new Restored(options.restored, options.now());
    this.#file = options.file && this.#fileClusters(options.file);
    this.#kubernetes = options.kubernetes && this.#kubernetesClusters(options.kubernetes);
    this.#dns = options.dns && this.#dnsClusters(options.dns);
    this.#envoy = new EnvoySource({
      ...options,
      ...options.envoyAdmin,
      isCovered: (name) => this.#world(name) !== undefined,
    });
    this.#view = {
      cluster: (name, nodeId) => this.#world(name) ?? this.#envoy.view(name, nodeId),
      clusters: () => this.#views(),
      proxy: (cluster, nodeId) => this.#envoy.proxy(cluster, nodeId),
      proxies: () => this.#envoy.proxies(),
    };
  }

  /** Resolves when the file was looked at, so that its clusters are covered. A bad file is told by `onError`. */
  async start(): Promise<void> {
    this.#envoy.start();
    await this.#file?.start();
  }

  /** A cluster carried traffic of this node: from now on its endpoints are looked up. O(1) if known, never blocks. */
  watch(cluster: string, nodeId?: string): void {
    if (this.#file?.view(cluster) === undefined) {
      this.#kubernetes?.watch(cluster);
      this.#dns?.watch(cluster);
    }
    if (nodeId !== undefined) this.#envoy.watch(cluster, nodeId);
  }

  /** The latest views, O(1). Each view in it is immutable; asking again gives a newer one. */
  snapshot(): DiscoveryView {
    return this.#view;
  }

  /** What another run needs to go on: plain JSON, the latest heard of first. Not the proxies' own lists. */
  state(): SavedSubject[] {
    return this.#restored.state({
      services: this.#kubernetes?.known() ?? [],
      hosts: this.#dns?.hosts() ?? [],
      file: { path: this.#options.file?.path, clusters: this.#file?.known() ?? new Map() },
      nowMs: this.#options.now(),
    });
  }

  /** Ends all looking; nothing is called back after it. The views stay. */
  stop(): void {
    this.#file?.stop();
    this.#kubernetes?.stop();
    this.#dns?.stop();
    this.#envoy.stop();
  }

  /** The world's list. A source that covers the cluster and fails is not replaced by a lesser one. */
  #world(cluster: string): ClusterView | undefined {
    return this.#file?.view(cluster) ?? this.#kubernetes?.view(cluster) ?? this.#dns?.view(cluster);
  }

  #views(): ClusterView[] {
    const world = [this.#file, this.#kubernetes, this.#dns].flatMap((source) => source?.views() ?? []);
    return [...world.filter(({ cluster, source }) => this.#speaksFor(cluster, source)), ...this.#envoy.views()];
  }

  #speaksFor(cluster: string, source: SourceKind): boolean {
    return this.#world(cluster)?.source === source;
  }

  #fileClusters(file: NonNullable<DiscoveryOptions['file']>): FileClusters {
    return new FileClusters({ ...this.#options, ...file, restored: this.#restored.fileClusters(file.path) });
  }

  #kubernetesClusters(kubernetes: NonNullable<DiscoveryOptions['kubernetes']>): KubernetesClusters {
    return new KubernetesClusters({
      ...this.#options,
      ...kubernetes,
      restored: (name) => this.#restored.service(name),
      onChange: (change) => this.#tellIfCovering(change),
    });
  }

  #tellIfCovering(change: EndpointChange): void {
    if (this.#speaksFor(change.cluster, change.source)) this.#options.onChange(change);
  }

  #dnsClusters(dns: NonNullable<DiscoveryOptions['dns']>): DnsClusters {
    return new DnsClusters({
      ...this.#options,
      ...dns,
      restored: (host) => this.#restored.host(host),
      onChange: (change) => this.#tellIfCovering(change),
    });
  }
}
