import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import type { SidelightError } from '../../lib/errors.ts';
import type { ClusterView } from '../../model/view.ts';
import { Bounds } from '../bounds.ts';
import type { ClusterSettings, EndpointChange } from '../change.ts';
import { clusterView } from '../cluster-view.ts';
import { fail } from '../knowledge.ts';
import type { AccessSource } from './access.ts';
import { createApiClient } from './api-client.ts';
import { type KnownService, learnSlices, type Seen, unknownService } from './known-service.ts';
import { NamespaceWatch } from './namespace-watch.ts';
import { type ServiceName, serviceOfCluster } from './service-name.ts';
import type { Slice } from './slice.ts';

export interface KubernetesClustersOptions {
  access: AccessSource;
  /** The only namespaces that are asked for; `undefined`: any. */
  namespaces: readonly string[] | undefined;
  /** The longest time that one watch lasts. */
  watchMs: number;
  /** Until an answer begins. */
  timeoutMs: number;
  staleAfterMs: number;
  maxClusters: number;
  maxLeftPerCluster: number;
  rule(cluster: string): Pick<ClusterSettings, 'service' | 'graceMs'>;
  restored(name: ServiceName): KnownService | undefined;
  now: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  /** Called for every change; the reader leaves out what another source covers. */
  onChange(change: EndpointChange): void;
  onError(error: SidelightError): void;
}

interface Service {
  readonly name: ServiceName;
  readonly clusters: Set<string>;
  known: KnownService;
  /** By name; empty until it was listed. */
  slices: Map<string, Slice['endpoints']>;
  /** It was listed in this run: from then on the watch tells of it. */
  isFollowed: boolean;
}

interface Namespace {
  readonly watch: NamespaceWatch;
  readonly services: Map<string, Service>;
  /** When its views were last made younger. */
  renewedMs: number;
}

/** Often enough for a view that is stale after seconds, and seldom enough for a namespace full of events. */
const renewMs = 500;

/** The clusters that carried traffic and are Services, by the EndpointSlices of these alone. */
export class KubernetesClusters {
  readonly #options: KubernetesClustersOptions;
  readonly #client: ReturnType<typeof createApiClient>;
  readonly #namespaces = new Map<string, Namespace>();
  readonly #services = new Map<string, Service>();
  /** `undefined`: the service never had a slice. */
  readonly #views = new Map<string, ClusterView | undefined>();
  /** Clusters that are no Services, or over the bound: remembered so that asking again is cheap. */
  readonly #uncovered: LRUCache<string, true>;
  readonly #bounds: Bounds;

  constructor(options: KubernetesClustersOptions) {
    this.#options = options;
    this.#client = createApiClient(options.access, options.timeoutMs);
    this.#bounds = new Bounds((error) => options.onError(error));
    this.#uncovered = new LRUCache({ max: options.maxClusters });
  }

  /** O(1) for a known cluster, never blocks. */
  watch(cluster: string): void {
    if (this.#views.has(cluster) || this.#uncovered.has(cluster)) return;
    const name = serviceOfCluster(cluster, this.#options.rule(cluster).service);
    if (name === undefined || !this.#isAllowed(name) || !this.#isRoomFor(cluster)) {
      this.#uncovered.set(cluster, true);
      return;
    }
    const service = this.#service(name);
    service.clusters.add(cluster);
    this.#views.set(cluster, this.#viewOf(cluster, service));
  }

  view(cluster: string): ClusterView | undefined {
    return this.#views.get(cluster);
  }

  views(): ClusterView[] {
    return [...this.#views.values()].filter((view) => view !== undefined);
  }

  known(): [name: ServiceName, known: KnownService][] {
    return Array.from(this.#services.values(), ({ name, known }) => [name, known]);
  }

  stop(): void {
    for (const { watch } of this.#namespaces.values()) watch.stop();
  }

  #isAllowed({ namespace }: ServiceName): boolean {
    return this.#options.namespaces?.includes(namespace) ?? true;
  }

  #isRoomFor(cluster: string): boolean {
    const { maxClusters } = this.#options;
    return this.#views.size < maxClusters || this.#bounds.reached('limits.clusters', maxClusters, cluster);
  }

  #service(name: ServiceName): Service {
    const key = `${name.namespace}/${name.service}`;
    let service = this.#services.get(key);
    if (service === undefined) {
      const known = this.#options.restored(name) ?? unknownService;
      service = { name, clusters: new Set(), known, slices: new Map(), isFollowed: false };
      this.#services.set(key, service);
      const namespace = this.#namespace(name.namespace);
      namespace.services.set(name.service, service);
      namespace.watch.add(name.service);
    }
    return service;
  }

  #namespace(name: string): Namespace {
    let namespace = this.#namespaces.get(name);
    if (namespace === undefined) {
      const services = new Map<string, Service>();
      const watch = new NamespaceWatch({
        ...this.#options,
        namespace: name,
        client: this.#client,
        onList: (asked, slices, seen) => this.#listed(services, asked, slices, seen),
        onSlice: (slice, gone, seen) => this.#changed(services.get(slice.service), slice, gone, seen),
        onAlive: (atMs) => this.#renew(name, atMs),
        onError: (error) => this.#failed(services, error),
      });
      namespace = { watch, services, renewedMs: 0 };
      this.#namespaces.set(name, namespace);
    }
    return namespace;
  }

  #listed(services: Namespace['services'], asked: ReadonlySet<string>, slices: readonly Slice[], seen: Seen): void {
    const byService = Map.groupBy(slices, ({ service }) => service);
    for (const name of asked) {
      const service = services.get(name);
      if (service === undefined) continue;
      service.slices = new Map(byService.get(name)?.map((slice) => [slice.name, slice.endpoints]));
      // Of an earlier run it is known until when it held.
      const fromMs = service.isFollowed ? seen.fromMs : (service.known.knowledge.lastAnswerMs ?? 0);
      service.isFollowed = true;
      this.#learn(service, { ...seen, fromMs });
    }
  }

  #changed(service: Service | undefined, slice: Slice, gone: boolean, seen: Seen): void {
    if (service === undefined) return;
    if (gone) service.slices.delete(slice.name);
    else service.slices.set(slice.name, slice.endpoints);
    this.#learn(service, seen);
  }

  #learn(service: Service, seen: Seen): void {
    const slices = [...service.slices.values()];
    const { known, added, removed } = learnSlices(service.known, slices, seen, this.#options.maxLeftPerCluster);
    this.#know(service, known);
    if (added.length + removed.length === 0) return;
    for (const cluster of service.clusters)
      this.#options.onChange({ cluster, source: 'kubernetes', added, removed, atMs: seen.atMs });
  }

  #renew(name: string, atMs: number): void {
    const namespace = this.#namespace(name);
    if (namespace.renewedMs <= atMs && atMs < namespace.renewedMs + renewMs) return;
    namespace.renewedMs = atMs;
    for (const service of namespace.services.values()) {
      const { known, isFollowed } = service;
      const knowledge = { ...known.knowledge, lastAnswerMs: atMs, lastError: undefined };
      if (isFollowed) this.#know(service, { ...known, knowledge });
    }
  }

  #failed(services: Namespace['services'], error: SidelightError): void {
    for (const service of services.values()) {
      const knowledge = fail(service.known.knowledge, error.message);
      this.#know(service, { ...service.known, knowledge });
    }
    this.#options.onError(error);
  }

  #know(service: Service, known: KnownService): void {
    service.known = known;
    for (const cluster of service.clusters) this.#views.set(cluster, this.#viewOf(cluster, service));
  }

  #viewOf(cluster: string, { name, known, isFollowed }: Service): ClusterView | undefined {
    // Until it was asked for, nobody knows: a lesser source must not speak for it.
    if (isFollowed && !known.hadSlice) return undefined;
    const { staleAfterMs } = this.#options;
    const names = { cluster, source: 'kubernetes', subject: `${name.namespace}/${name.service}` } as const;
    const settings = { staleAfterMs, sameAsProxy: true, graceMs: this.#options.rule(cluster).graceMs };
    const { terminating, earlier } = known;
    return { ...clusterView(names, known.knowledge, settings), terminating, earlier };
  }
}
