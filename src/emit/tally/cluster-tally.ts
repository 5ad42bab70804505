import { LRUCache } from 'lru-cache';
import type { ReporterKind } from '../../model/reporter.ts';
import type { JudgedExchange } from '../../model/verdict.ts';
import type { TaggedResponse } from '../tagged-response.ts';
import {
  type Counts,
  type CountsRow,
  countAttempt,
  countExchange,
  countTagged,
  readCounts,
  type Trend,
} from './counts.ts';
import { bucketMs, History } from './history.ts';

/** One cluster as proxies of one kind see it: one call may be seen by three kinds, so their numbers are never added up. */
export interface ClusterRow {
  /** Absent: no cluster was chosen (no route, a redirect). */
  cluster: string | undefined;
  reporterKind: ReporterKind;
  /** When it was last heard of, epoch ms, our clock. */
  lastMs: number;
  /** Since this process began, or since the cluster came back after it had lost its place. */
  total: Counts;
  /** In the last 15 minutes. */
  recent: Counts;
}

/** The last 15 minutes of one cluster in steps of `bucketMs`, oldest first; the last step is not over. */
export interface ClusterHistory {
  cluster: string | undefined;
  reporterKind: ReporterKind;
  fromMs: number;
  bucketMs: number;
  points: readonly Trend[];
}

interface Entry {
  cluster: string | undefined;
  reporterKind: ReporterKind;
  lastMs: number;
  history: History;
}

/** What the page shows of each cluster: counts and 15 minutes of history. Bounded: the one unused for longest leaves. */
export class ClusterTally {
  readonly #entries: LRUCache<string, Entry>;

  /** `max`: clusters, once per reporter kind. */
  constructor(max: number) {
    this.#entries = new LRUCache({ max });
  }

  exchange(judged: JudgedExchange, nowMs: number): void {
    const { exchange, verdict } = judged;
    const { kind } = exchange.reporter;
    const own = this.#row(exchange.cluster, kind, nowMs);
    countExchange(own, judged);
    exchange.attempts.forEach(({ cluster = exchange.cluster }, index) => {
      const row = cluster === exchange.cluster ? own : this.#row(cluster, kind, nowMs);
      countAttempt(row, verdict.attempts[index]?.result ?? 'failed', verdict.hedged);
    });
  }

  tagged({ facts, tags }: TaggedResponse, nowMs: number): void {
    countTagged(this.#row(facts.cluster, facts.reporter.kind, nowMs), tags.retried);
  }

  /** Every cluster, the one heard of last first. */
  rows(nowMs: number): ClusterRow[] {
    return Array.from(this.#entries.values(), ({ cluster, reporterKind, lastMs, history }) => ({
      cluster,
      reporterKind,
      lastMs,
      total: readCounts(history.total(nowMs)),
      recent: readCounts(history.recent(nowMs)),
    }));
  }

  /** Of these clusters, as every kind of proxy sees them. */
  history(clusters: ReadonlySet<string>, nowMs: number): ClusterHistory[] {
    return [...this.#entries.values()]
      .filter(({ cluster }) => clusters.has(cluster ?? ''))
      .map(({ cluster, reporterKind, history }) => ({
        cluster,
        reporterKind,
        bucketMs,
        ...history.trend(nowMs),
      }));
  }

  #row(cluster: string | undefined, reporterKind: ReporterKind, nowMs: number): CountsRow {
    const key = `${reporterKind}\n${cluster ?? ''}`;
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { cluster, reporterKind, lastMs: nowMs, history: new History(nowMs) };
      this.#entries.set(key, entry);
    }
    entry.lastMs = nowMs;
    return entry.history.row(nowMs);
  }
}
