import type { HrTime } from '@opentelemetry/api';
import type { Labels } from '../attributes.ts';
import type { Metric } from '../names.ts';
import { toHrTime } from '../time.ts';
import { labelText } from './label-text.ts';

interface SeriesBase {
  metric: Metric;
  /** Besides its scope's. */
  own: Labels;
  ownText: string;
  /** Since when it counts. */
  start: HrTime;
}

/** A counter, or a gauge. */
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
  #text: string | undefined;

  constructor(labels: Labels) {
    this.labels = labels;
  }

  /** Its labels in the text format, made once: a scrape writes them on every line. */
  get text(): string {
    this.#text ??= labelText(this.labels);
    return this.#text;
  }

  get size(): number {
    return this.#series.size;
  }

  series(): IterableIterator<Series> {
    return this.#series.values();
  }

  /** Adds to a counter, or to an up-down gauge. Adding 0 starts the series. */
  add(metric: Metric, nowMs: number, own: Labels = none, amount = 1): void {
    const key = keyOf(metric, own);
    const known = this.#series.get(key);
    if (known !== undefined && 'value' in known) known.value += amount;
    else this.#series.set(key, { ...startOf(metric, nowMs, own), value: amount });
  }

  /** Adds one observation, in the metric's unit. */
  observe(metric: Metric, nowMs: number, value: number, own: Labels = none): void {
    const key = keyOf(metric, own);
    const bounds = metric.buckets ?? [];
    let series = this.#series.get(key);
    if (series === undefined || !('counts' in series)) {
      const counts = Array.from({ length: bounds.length + 1 }, () => 0);
      series = { ...startOf(metric, nowMs, own), counts, sum: 0, count: 0 };
      this.#series.set(key, series);
    }
    const fits = bounds.findIndex((bound) => value <= bound);
    const bucket = fits === -1 ? bounds.length : fits;
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

const none: Labels = {};

/** Own labels come from closed sets, so there are few combinations, and the series share them and their texts. */
const shared = new Map<string, { own: Labels; ownText: string }>();

function startOf(metric: Metric, nowMs: number, own: Labels): SeriesBase {
  const key = keyOf(metric, own);
  const labels = shared.get(key) ?? { own, ownText: labelText(own) };
  shared.set(key, labels);
  return { metric, ...labels, start: toHrTime(nowMs) };
}

function keyOf(metric: Metric, own: Labels): string {
  let key = metric.name;
  for (const name in own) key += `|${name}=${own[name as keyof Labels]}`;
  return key;
}
