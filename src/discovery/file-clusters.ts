import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';
import type { SidelightError } from '../lib/errors.ts';
import type { ClusterView } from '../model/view.ts';
import { clusterView } from './cluster-view.ts';
import { FileSource } from './file-source.ts';
import { fileGrace } from './grace.ts';
import { fail, type Knowledge, learn, nothingKnown } from './knowledge.ts';

export interface FileClustersOptions {
  path: string;
  pollMs: number;
  /** From the moment the file became bad, ms; as long as it is good it is true. */
  staleAfterMs: number;
  maxLeftPerCluster: number;
  rule(cluster: string): { graceMs: number | undefined };
  /** What another run of this process knew of the file's clusters. */
  restored: ReadonlyMap<string, Knowledge>;
  now: Clock;
  onChange(change: {
    cluster: string;
    source: 'file';
    added: readonly string[];
    removed: readonly string[];
    atMs: number;
  }): void;
  onError(error: SidelightError): void;
}

/** Clusters that the file named once and may name again: a slip in an edit must not cost what is known of them. */
const maxDropped = 1000;

/** The clusters that a file names. One that it no longer names is no longer covered by it, and remembered for a while. */
export class FileClusters {
  readonly #options: FileClustersOptions;
  readonly #source: FileSource;
  readonly #known = new Map<string, Knowledge>();
  /** Until the file is first good, or first bad. */
  #restored: ReadonlyMap<string, Knowledge>;
  readonly #dropped = new LRUCache<string, Knowledge>({ max: maxDropped });
  readonly #views = new Map<string, ClusterView>();

  constructor(options: FileClustersOptions) {
    this.#options = options;
    this.#restored = options.restored;
    this.#source = new FileSource({
      path: options.path,
      pollMs: options.pollMs,
      now: options.now,
      onGood: (clusters, atMs) => this.#good(clusters, atMs),
      onBad: (error) => this.#bad(error),
    });
  }

  async start(): Promise<void> {
    await this.#source.start();
  }

  stop(): void {
    this.#source.stop();
  }

  view(cluster: string): ClusterView | undefined {
    return this.#views.get(cluster);
  }

  views(): ClusterView[] {
    return [...this.#views.values()];
  }

  known(): ReadonlyMap<string, Knowledge> {
    return this.#known;
  }

  #good(clusters: ReadonlyMap<string, readonly string[]>, atMs: number): void {
    for (const [cluster, knowledge] of this.#known) {
      if (clusters.has(cluster)) continue;
      this.#dropped.set(cluster, knowledge);
      this.#known.delete(cluster);
      this.#views.delete(cluster);
    }
    for (const [cluster, endpoints] of clusters) this.#learn(cluster, endpoints, atMs);
    this.#restored = new Map();
  }

  #learn(cluster: string, endpoints: readonly string[], atMs: number): void {
    const before = this.#known.get(cluster) ?? this.#dropped.get(cluster) ?? this.#restored.get(cluster);
    this.#dropped.delete(cluster);
    const { knowledge, added, removed } = learn(
      before ?? nothingKnown,
      { endpoints, atMs, grace: fileGrace },
      this.#options.maxLeftPerCluster,
    );
    this.#set(cluster, knowledge);
    if (added.length + removed.length > 0) this.#options.onChange({ cluster, source: 'file', added, removed, atMs });
  }

  #bad(error: SidelightError): void {
    // Its clusters are its own although it fails: a lesser source must not speak for them.
    for (const [cluster, knowledge] of this.#restored) this.#known.set(cluster, knowledge);
    this.#restored = new Map();
    for (const [cluster, knowledge] of this.#known) this.#set(cluster, fail(knowledge, error.message));
    this.#options.onError(error);
  }

  #set(cluster: string, knowledge: Knowledge): void {
    const { path, staleAfterMs } = this.#options;
    this.#known.set(cluster, knowledge);
    const settings = { staleAfterMs, sameAsProxy: true, graceMs: this.#options.rule(cluster).graceMs };
    this.#views.set(cluster, clusterView({ cluster, source: 'file', subject: path }, knowledge, settings));
  }
}
