import type { HrTime } from '@opentelemetry/api';
import type { Labels } from '../attributes.ts';
import type { Metric } from '../names.ts';
import { toHrTime } from '../time.ts';

interface SeriesBase {
  metric: Metric;
  labels: Labels;
  /** Since when it counts. */
  start: HrTime;
}

/** A counter, or a gauge that goes up and down. */
export interface NumberSeries extends SeriesBase {
  value: number;
}

/** One count per bucket and one more for what is over the last bound. */
export interface HistogramSeries extends SeriesBase {
  counts: number[];
  sum: number;
  count: number;
}

export type Series = NumberSeries | HistogramSeries;

/** The series that share some labels: all of a reporter and cluster, or of one endpoint there. They go together. */
export class Scope {
  readonly labels: Labels;
  readonly #series = new Map<string, Series>();

  constructor(labels: Labels) {
    this.labels = labels;
  }

  get size(): number {
    return this.#series.size;
  }

  series(): IterableIterator<Series> {
    return this.#series.values();
  }

  /** Adds to a counter, or to an up-down gauge. Adding 0 starts the series. */
  add(metric: Metric, nowMs: number, own: Labels = {}, amount = 1): void {
    const key = keyOf(metric, own);
    const known = this.#series.get(key);
    if (known !== undefined && 'value' in known) known.value += amount;
    else this.#series.set(key, { metric, labels: { ...this.labels, ...own }, start: toHrTime(nowMs), value: amount });
  }

  /** Adds one observation, in the metric's unit. */
  observe(metric: Metric, nowMs: number, value: number, own: Labels = {}): void {
    const key = keyOf(metric, own);
    const bounds = metric.buckets ?? [];
    let series = this.#series.get(key);
    if (series === undefined || !('counts' in series)) {
      const counts = Array.from({ length: bounds.length + 1 }, () => 0);
      series = { metric, labels: { ...this.labels, ...own }, start: toHrTime(nowMs), counts, sum: 0, count: 0 };
      this.#series.set(key, series);
    }
    const over = bounds.findIndex((bound) => value <= bound);
    const bucket = over === -1 ? bounds.length : over;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += value;
    series.count += 1;
  }

  has(metric: Metric): boolean {
    return this.#series.has(metric.name);
  }

  /** Drops a series that has no labels of its own. */
  drop(metric: Metric): void {
    this.#series.delete(metric.name);
  }
}

function keyOf(metric: Metric, own: Labels): string {
  let key = metric.name;
  for (const [name, value] of Object.entries(own)) key += `|${name}=${value}`;
  return key;
}
