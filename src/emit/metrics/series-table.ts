import type { Reporter, ReporterKind } from '../../model/reporter.ts';
import { attribute, type Labels } from '../attributes.ts';
import { BoundedTable } from './bounded-table.ts';
import { Scope } from './series.ts';

export interface SeriesLimits {
  /** Reporters (kind, workload and namespace) that have their own label. */
  reporters: number;
  /** Clusters that have their own label, counted once per reporter. */
  clusters: number;
  /** Endpoints that have their own label, counted once per cluster and reporter. */
  endpoints: number;
  /** How long one must be unused, ms, before it may give up its place to another. */
  idleMs: number;
}

export type BoundedLabel = 'reporter' | 'cluster' | 'endpoint';

/** Label values that have no place any more. */
const other = 'other';

/** All series of one cluster as one reporter sees it, without those of single endpoints. */
export class ClusterScope extends Scope {
  readonly id: number;
  readonly key: string;
  readonly owner: ReporterScope;
  readonly endpointKeys = new Set<string>();
  /** For the endpoints that found no place. */
  readonly otherEndpoints: Scope;

  constructor(id: number, key: string, owner: ReporterScope, labels: Labels) {
    super(labels);
    this.id = id;
    this.key = key;
    this.owner = owner;
    this.otherEndpoints = new Scope({ ...labels, [attribute.endpoint]: other });
  }
}

/** Series of one endpoint of a cluster. */
export class EndpointScope extends Scope {
  readonly cluster: ClusterScope;
  readonly key: string;

  constructor(cluster: ClusterScope, key: string, endpoint: string) {
    super({ ...cluster.labels, [attribute.endpoint]: endpoint });
    this.cluster = cluster;
    this.key = key;
  }
}

interface ReporterScope {
  id: number;
  labels: Labels;
  clusterKeys: Set<string>;
  /** For the clusters that found no place. */
  otherClusters: ClusterScope | undefined;
}

/** Every counter and histogram by reporter, cluster and endpoint: bounded tables, what is over them is `other`. */
export class SeriesTable {
  readonly #reporters: BoundedTable<ReporterScope>;
  readonly #otherReporters = new Map<ReporterKind, ReporterScope>();
  readonly #clusters: BoundedTable<ClusterScope>;
  readonly #endpoints: BoundedTable<EndpointScope>;
  readonly #onOverflow: (label: BoundedLabel) => void;
  readonly #onNewCluster: (scope: ClusterScope, nowMs: number) => void;
  #lastId = 0;

  constructor(
    limits: SeriesLimits,
    events: {
      /** An observation went to `other`. */
      onOverflow: (label: BoundedLabel) => void;
      onNewCluster: (scope: ClusterScope, nowMs: number) => void;
    },
  ) {
    this.#onOverflow = events.onOverflow;
    this.#onNewCluster = events.onNewCluster;
    this.#endpoints = new BoundedTable(limits.endpoints, limits.idleMs, (endpoint) => {
      endpoint.cluster.endpointKeys.delete(endpoint.key);
    });
    this.#clusters = new BoundedTable(limits.clusters, limits.idleMs, (cluster) => {
      cluster.owner.clusterKeys.delete(cluster.key);
      for (const key of cluster.endpointKeys) this.#endpoints.drop(key);
    });
    this.#reporters = new BoundedTable(limits.reporters, limits.idleMs, (reporter) => {
      for (const key of reporter.clusterKeys) this.#clusters.drop(key);
    });
  }

  /** `cluster` undefined: no cluster was chosen; its series have no cluster label. */
  cluster(reporter: Reporter, cluster: string | undefined, nowMs: number): ClusterScope {
    const owner = this.#reporter(reporter, nowMs);
    // A cluster of that very name shares the series: two of the same labels would make the scrape unreadable.
    if (cluster === other) return this.#otherClusters(owner, nowMs);
    const key = `${owner.id} ${cluster ?? ''}`;
    const scope = this.#clusters.get(key, nowMs, () => {
      owner.clusterKeys.add(key);
      return this.#newCluster(owner, key, cluster, nowMs);
    });
    if (scope !== undefined) return scope;
    this.#onOverflow('cluster');
    return this.#otherClusters(owner, nowMs);
  }

  #otherClusters(owner: ReporterScope, nowMs: number): ClusterScope {
    owner.otherClusters ??= this.#newCluster(owner, '', other, nowMs);
    return owner.otherClusters;
  }

  /** `endpoint`: as Envoy spells it. */
  endpoint(cluster: ClusterScope, endpoint: string, nowMs: number): Scope {
    if (endpoint === other) return cluster.otherEndpoints;
    const key = `${cluster.id} ${endpoint}`;
    const scope = this.#endpoints.get(key, nowMs, () => {
      cluster.endpointKeys.add(key);
      return new EndpointScope(cluster, key, endpoint);
    });
    if (scope !== undefined) return scope;
    this.#onOverflow('endpoint');
    return cluster.otherEndpoints;
  }

  *scopes(): IterableIterator<Scope> {
    for (const cluster of this.#clusterScopes()) {
      yield cluster;
      yield cluster.otherEndpoints;
    }
    yield* this.#endpoints.values();
  }

  *endpointScopes(): IterableIterator<Scope> {
    for (const cluster of this.#clusterScopes()) yield cluster.otherEndpoints;
    yield* this.#endpoints.values();
  }

  *#clusterScopes(): IterableIterator<ClusterScope> {
    yield* this.#clusters.values();
    for (const reporter of this.#reporters.values())
      if (reporter.otherClusters !== undefined) yield reporter.otherClusters;
    for (const reporter of this.#otherReporters.values())
      if (reporter.otherClusters !== undefined) yield reporter.otherClusters;
  }

  #reporter({ kind, workload, namespace }: Reporter, nowMs: number): ReporterScope {
    if (workload === other && namespace === other) return this.#otherReporter(kind);
    const known = this.#reporters.get(`${kind}\n${workload}\n${namespace}`, nowMs, () =>
      this.#newReporter(kind, workload, namespace),
    );
    if (known !== undefined) return known;
    this.#onOverflow('reporter');
    return this.#otherReporter(kind);
  }

  #otherReporter(kind: ReporterKind): ReporterScope {
    const shared = this.#otherReporters.get(kind) ?? this.#newReporter(kind, other, other);
    this.#otherReporters.set(kind, shared);
    return shared;
  }

  #newReporter(kind: ReporterKind, workload: string, namespace: string): ReporterScope {
    const labels: Labels = { [attribute.reporterKind]: kind };
    if (workload !== '') labels[attribute.reporterWorkload] = workload;
    if (namespace !== '') labels[attribute.reporterNamespace] = namespace;
    return { id: this.#nextId(), labels, clusterKeys: new Set(), otherClusters: undefined };
  }

  #newCluster(owner: ReporterScope, key: string, cluster: string | undefined, nowMs: number): ClusterScope {
    const own: Labels = cluster === undefined ? {} : { [attribute.cluster]: cluster };
    const scope = new ClusterScope(this.#nextId(), key, owner, { ...own, ...owner.labels });
    this.#onNewCluster(scope, nowMs);
    return scope;
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }
}
