import type { Reporter, ReporterKind } from '../../model/reporter.ts';
import { attribute, type Labels } from '../attributes.ts';
import { BoundedTable, type Shelf } from './bounded-table.ts';
import { Layout } from './layout.ts';
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

const clusterLayout = new Layout();
const endpointLayout = new Layout();

/** All series of one cluster as one reporter sees it, without those of single endpoints. */
export class ClusterScope extends Scope {
  /** Its endpoints that have a place. */
  readonly endpoints: Shelf<Scope> = new Map();
  /** For the endpoints that found no place. */
  readonly otherEndpoints: Scope;

  constructor(labels: Labels) {
    super(labels, clusterLayout);
    this.otherEndpoints = endpointScope(this, other);
  }
}

/** Series of one endpoint of a cluster. */
function endpointScope({ labels }: ClusterScope, endpoint: string): Scope {
  return new Scope({ ...labels, [attribute.endpoint]: endpoint }, endpointLayout);
}

interface ReporterScope {
  labels: Labels;
  /** Its clusters that have a place. */
  clusters: Shelf<ClusterScope>;
  /** For the clusters that found no place. */
  otherClusters: ClusterScope | undefined;
}

/** Every counter and histogram by reporter, cluster and endpoint: bounded tables, what is over them is `other`. */
export class SeriesTable {
  readonly #reporters: BoundedTable<ReporterScope>;
  readonly #byReporter: Shelf<ReporterScope> = new Map();
  readonly #otherReporters = new Map<ReporterKind, ReporterScope>();
  readonly #clusters: BoundedTable<ClusterScope>;
  readonly #endpoints: BoundedTable<Scope>;
  readonly #onOverflow: (label: BoundedLabel) => void;
  readonly #onNewCluster: (scope: ClusterScope, nowMs: number) => void;

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
    this.#endpoints = new BoundedTable(limits.endpoints, limits.idleMs, () => undefined);
    this.#clusters = new BoundedTable(limits.clusters, limits.idleMs, ({ endpoints }) =>
      this.#endpoints.clear(endpoints),
    );
    this.#reporters = new BoundedTable(limits.reporters, limits.idleMs, ({ clusters }) =>
      this.#clusters.clear(clusters),
    );
  }

  /** `cluster` undefined: no cluster was chosen; its series have no cluster label. */
  cluster(reporter: Reporter, cluster: string | undefined, nowMs: number): ClusterScope {
    const owner = this.#reporter(reporter, nowMs);
    // A cluster of that very name shares the series: two of the same labels would make the scrape unreadable.
    if (cluster === other) return this.#otherClusters(owner, nowMs);
    const scope = this.#clusters.get(owner.clusters, cluster ?? '', nowMs, () =>
      this.#newCluster(owner, cluster, nowMs),
    );
    if (scope !== undefined) return scope;
    this.#onOverflow('cluster');
    return this.#otherClusters(owner, nowMs);
  }

  #otherClusters(owner: ReporterScope, nowMs: number): ClusterScope {
    owner.otherClusters ??= this.#newCluster(owner, other, nowMs);
    return owner.otherClusters;
  }

  /** `endpoint`: as Envoy spells it. */
  endpoint(cluster: ClusterScope, endpoint: string, nowMs: number): Scope {
    if (endpoint === other) return cluster.otherEndpoints;
    const scope = this.#endpoints.get(cluster.endpoints, endpoint, nowMs, () => endpointScope(cluster, endpoint));
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
    const known = this.#reporters.get(this.#byReporter, `${kind}\n${workload}\n${namespace}`, nowMs, () =>
      newReporter(kind, workload, namespace),
    );
    if (known !== undefined) return known;
    this.#onOverflow('reporter');
    return this.#otherReporter(kind);
  }

  #otherReporter(kind: ReporterKind): ReporterScope {
    const shared = this.#otherReporters.get(kind) ?? newReporter(kind, other, other);
    this.#otherReporters.set(kind, shared);
    return shared;
  }

  #newCluster(owner: ReporterScope, cluster: string | undefined, nowMs: number): ClusterScope {
    const own: Labels = cluster === undefined ? {} : { [attribute.cluster]: cluster };
    const scope = new ClusterScope({ ...own, ...owner.labels });
    this.#onNewCluster(scope, nowMs);
    return scope;
  }
}

function newReporter(kind: ReporterKind, workload: string, namespace: string): ReporterScope {
  const labels: Labels = { [attribute.reporterKind]: kind };
  if (workload !== '') labels[attribute.reporterWorkload] = workload;
  if (namespace !== '') labels[attribute.reporterNamespace] = namespace;
  return { labels, clusters: new Map(), otherClusters: undefined };
}
