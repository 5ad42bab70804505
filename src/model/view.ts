/** Where a cluster's list of endpoints comes from. */
export const sourceKinds = ['dns', 'file'] as const;
export type SourceKind = (typeof sourceKinds)[number];

/** One cluster's endpoints as a source knows them: immutable, replaced whole. All times epoch ms, our clock. */
export interface ClusterView {
  cluster: string;
  source: SourceKind;
  /** What the source asked for: a host name or a file. */
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
  /** How many endpoints came and went so far, the first answer not counted; the reader counts the differences. */
  changes: { added: number; removed: number };
  /** The last failure, in words; absent after a good answer. */
  lastError: string | undefined;
}

/** All that discovery knows at one moment. `undefined`: no source covers the cluster. */
export interface DiscoveryView {
  cluster(name: string): ClusterView | undefined;
  clusters(): readonly ClusterView[];
}
