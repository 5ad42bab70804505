/**
 * Where a cluster's list of endpoints comes from, the most authoritative first. `envoy`: the proxy's own list, taken for
 * the world's only where nothing else covers the cluster.
 */
export const sourceKinds = ['file', 'kubernetes', 'dns', 'envoy'] as const;
export type SourceKind = (typeof sourceKinds)[number];

/** An endpoint that was told to end before it is taken away. Times epoch ms, our clock. */
export interface Termination {
  sinceMs: number;
  /** When it was taken away; `undefined`: it is still there, and drains. */
  goneMs: number | undefined;
}

/** Who had an address before the one that has it now. Times epoch ms, our clock. */
export interface EarlierOwner {
  leftAtMs: number;
  /** From when its grace runs: when it was gone, if it was told to end before. */
  graceFromMs: number;
  /** Between these two the next one took the address: not before the first, and seen at the second. */
  nextFromMs: number;
  nextByMs: number;
}

/** One cluster's endpoints as a source knows them: immutable, replaced whole. All times epoch ms, our clock. */
export interface ClusterView {
  cluster: string;
  source: SourceKind;
  /** What the source asked for: a host name, a file, `NAMESPACE/SERVICE`, or Envoy's admin address. */
  subject: string;
  /** The first good answer; `undefined`: none yet. What is older than this cannot be judged. */
  firstAnswerMs: number | undefined;
  /** The last good answer. */
  lastAnswerMs: number | undefined;
  /** A view whose last good answer is older than this is stale: every verdict is `unknown`. */
  staleAfterMs: number;
  /**
   * How long after it left an endpoint is only `draining`. It belongs to the last change; as long as an earlier
   * departure is inside a longer grace, that longer one holds.
   */
  graceMs: number;
  /** False: the source does not see what the proxy sees, so every verdict is `unknown`. */
  sameAsProxy: boolean;
  /** IP, or `ip:port` where the source names ports (`[v6]:port`), in the canonical form → listed since. */
  listed: ReadonlyMap<string, number>;
  /** Those that were listed and left → when. Bounded, oldest out. */
  left: ReadonlyMap<string, number>;
  /** Those that were told to end: only draining until they are gone, and for the grace after it. Absent: the source does not tell. */
  terminating?: ReadonlyMap<string, Termination>;
  /** Of an address that passed from one endpoint to another, the earlier ones, the first first. Absent: the source does not tell. */
  earlier?: ReadonlyMap<string, readonly EarlierOwner[]>;
  /** How many endpoints came and went so far, the first answer not counted; the reader counts the differences. */
  changes: { added: number; removed: number };
  /** The last failure, in words; absent after a good answer. */
  lastError: string | undefined;
}

/** A host as a proxy's `/clusters` lists it. */
export interface ProxyHost {
  /**
   * Envoy's `cx_active` of this host. Under LOGICAL_DNS it also counts connections to earlier addresses. Absent: a
   * further address of a host that is listed too, and counted there.
   */
  activeConnections: number | undefined;
  healthy: boolean;
  /** Envoy keeps it although its source dropped it, until it fails its health check. */
  pendingRemoval: boolean;
}

/** What one proxy itself says of one cluster, kept apart from the world's list. Immutable, replaced whole. */
export interface ProxyView {
  nodeId: string;
  cluster: string;
  /** The admin address that said it. */
  subject: string;
  /** `STATIC`, `STRICT_DNS`, `LOGICAL_DNS`, `EDS`, `ORIGINAL_DST`, or the name of a custom type; absent: not known yet. */
  type: string | undefined;
  envoyVersion: string;
  /** `ip:port` (`[v6]:port`), canonical. */
  hosts: ReadonlyMap<string, ProxyHost>;
  /** `cluster.NAME.upstream_cx_active`: every open connection, also those that belong to no listed host. */
  activeConnections: number | undefined;
  /** Connections were, or may have been, opened while it was asked: then its numbers are not of one moment. */
  openedMeanwhile: boolean;
  /** After which Envoy closes an unused upstream connection, ms; absent: not said. 0: never. */
  idleTimeoutMs: number | undefined;
  closesOnHostSetChange: boolean;
  ignoresHealthOnRemoval: boolean;
  maxConnectionDurationMs: number | undefined;
  /** Runtime flag `envoy.reloadable_features.enable_new_dns_implementation`; absent: not set, so by version. */
  newDnsImplementation: boolean | undefined;
  /** When the last good answer was asked for, epoch ms, our clock: what came after that it need not know. */
  lastAnswerMs: number;
  staleAfterMs: number;
  /** The last failure, in words; absent after a good answer. */
  lastError: string | undefined;
}

/** Types of clusters whose hosts come with the requests that chose them, or belong to other clusters. */
const withoutList: ReadonlySet<string | undefined> = new Set(['ORIGINAL_DST', 'envoy.clusters.aggregate']);

/**
 * Whether the hosts that a proxy shows for a cluster of this type are a list of endpoints, so that one which is not there
 * is none. Envoy 1.40, test/e2e/cluster-kinds.test.ts.
 */
export function listsEndpoints(type: string | undefined): boolean {
  return !withoutList.has(type);
}

/** All that discovery knows at one moment. `undefined`: no source covers the cluster. */
export interface DiscoveryView {
  /** The world's list, or, where only proxies tell, that of the proxy with this node id (any of them without one). */
  cluster(name: string, nodeId?: string): ClusterView | undefined;
  clusters(): readonly ClusterView[];
  /** `undefined`: its admin interface is not asked, or has not answered yet. */
  proxy(cluster: string, nodeId: string): ProxyView | undefined;
  proxies(): readonly ProxyView[];
}

/** Whether what a source said is too old to go by; so is what it never said. */
export function isStale(
  { lastAnswerMs, staleAfterMs }: { lastAnswerMs: number | undefined; staleAfterMs: number },
  nowMs: number,
): boolean {
  return lastAnswerMs === undefined || nowMs - lastAnswerMs > staleAfterMs;
}
