import type { Labels } from '../attributes.ts';
import { labelText } from './label-text.ts';
import { type Layout, lengthOf, type Place } from './layout.ts';
import type { SeriesKind } from './series-kind.ts';

interface SeriesBase {
  kind: SeriesKind;
  /** Since when it counts, epoch ms. */
  startMs: number;
}

/** A counter, or a gauge. */
export interface NumberSeries extends SeriesBase {
  value: number;
}

/** One count per bucket and one more for what is over the last bound. */
export interface HistogramSeries extends SeriesBase {
  counts: readonly number[];
  sum: number;
  count: number;
}

export type Series = NumberSeries | HistogramSeries;

/** What a number is as long as its series has not begun. */
const absent = Number.NaN;

/**
 * The series that share some labels: all of a reporter and cluster, or of one endpoint there. They go together. Of
 * thousands of scopes most are not in the CPU's cache when they are counted in, so all numbers of one are side by side:
 * with 1,000 clusters in turn a `Map` of series was the dearest part of an exchange (test/bench/endpoints.ts).
 */
export class Scope {
  readonly labels: Labels;
  readonly #layout: Layout;
  /** By place. */
  readonly #numbers: number[] = [];
  /** Of each kind, by its index, epoch ms. */
  readonly #starts: number[] = [];
  #size = 0;
  #text: string | undefined;

  /** `layout`: one for all scopes with the same metrics. */
  constructor(labels: Labels, layout: Layout) {
    this.labels = labels;
    this.#layout = layout;
  }

  /** Its labels in the text format, made once: a scrape writes them on every line. */
  get text(): string {
    this.#text ??= labelText(this.labels);
    return this.#text;
  }

  get size(): number {
    return this.#size;
  }

  /** As of now. */
  *series(): Generator<Series> {
    for (const place of this.#layout.places) if (this.#has(place)) yield this.#read(place);
  }

  /** Adds to a counter, or to an up-down gauge. Adding 0 starts the series. */
  add(kind: SeriesKind, nowMs: number, amount = 1): void {
    this.#increase(this.#started(kind, nowMs), amount);
  }

  /** Adds one observation, in the metric's unit. */
  observe(kind: SeriesKind, nowMs: number, value: number): void {
    const at = this.#started(kind, nowMs);
    this.#increase(at, value);
    this.#increase(at + 1 + bucketOf(value, kind.metric.buckets ?? []), 1);
  }

  has(kind: SeriesKind): boolean {
    return this.#has(this.#layout.placeOf(kind));
  }

  drop(kind: SeriesKind): void {
    const place = this.#layout.placeOf(kind);
    if (!this.#has(place)) return;
    this.#numbers.fill(absent, place.at, place.at + lengthOf(kind));
    this.#size -= 1;
  }

  #has({ at }: Place): boolean {
    return !Number.isNaN(this.#numbers[at] ?? absent);
  }

  #increase(at: number, amount: number): void {
    this.#numbers[at] = (this.#numbers[at] ?? 0) + amount;
  }

  #started(kind: SeriesKind, nowMs: number): number {
    const place = this.#layout.placeOf(kind);
    if (!this.#has(place)) this.#start(place, nowMs);
    return place.at;
  }

  #start({ kind, index, at }: Place, nowMs: number): void {
    const end = at + lengthOf(kind);
    while (this.#numbers.length < end) this.#numbers.push(absent);
    while (this.#starts.length <= index) this.#starts.push(absent);
    this.#numbers.fill(0, at, end);
    this.#starts[index] = nowMs;
    this.#size += 1;
  }

  #read({ kind, index, at }: Place): Series {
    const startMs = this.#starts[index] ?? absent;
    const [first = 0, ...counts] = this.#numbers.slice(at, at + lengthOf(kind));
    if (kind.metric.kind !== 'histogram') return { kind, startMs, value: first };
    return { kind, startMs, counts, sum: first, count: counts.reduce((sum, count) => sum + count, 0) };
  }
}

function bucketOf(value: number, bounds: readonly number[]): number {
  const fits = bounds.findIndex((bound) => value <= bound);
  return fits === -1 ? bounds.length : fits;
}
