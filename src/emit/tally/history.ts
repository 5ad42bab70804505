import { type CountsRow, countsLength, readTrend, type Trend } from './counts.ts';

/** One step of a sparkline, ms. */
export const bucketMs = 10_000;
/** 15 minutes. */
const bucketCount = 90;

/**
 * The counts of one cluster: of the last 15 minutes in steps of ten seconds, and of all time. 11 kB, whatever is counted.
 * What happens is written once, into the newest step; sums are of steps that are over.
 */
export class History {
  readonly #numbers = new Uint32Array(countsLength * bucketCount);
  /** The steps that are over, so that a reader need not add up thousands of numbers a second. */
  readonly #over = new Float64Array(countsLength);
  /** What is longer ago. */
  readonly #past = new Float64Array(countsLength);
  /** Number of the newest step, since the epoch. */
  #newest: number;

  constructor(nowMs: number) {
    this.#newest = stepOf(nowMs);
  }

  /** Where to count what happens now. */
  row(nowMs: number): CountsRow {
    this.#advance(nowMs);
    return this.#rowOf(this.#newest);
  }

  /** The last 15 minutes in one row. */
  recent(nowMs: number): CountsRow {
    return sumOf(this.row(nowMs), this.#over);
  }

  /** All that was ever counted in one row. */
  total(nowMs: number): CountsRow {
    return sumOf(this.recent(nowMs), this.#past);
  }

  /** Oldest first; the last one is not over yet. */
  trend(nowMs: number): { fromMs: number; points: Trend[] } {
    this.#advance(nowMs);
    const oldest = this.#newest - bucketCount + 1;
    const points = Array.from({ length: bucketCount }, (_, index) => readTrend(this.#rowOf(oldest + index)));
    return { fromMs: oldest * bucketMs, points };
  }

  #rowOf(step: number): CountsRow {
    return { numbers: this.#numbers, from: (step % bucketCount) * countsLength };
  }

  /** Empties the steps that time has passed over. A clock that was set back goes on in the newest. */
  #advance(nowMs: number): void {
    const step = stepOf(nowMs);
    if (step <= this.#newest) return;
    add(this.#over, this.#rowOf(this.#newest), 1);
    const passed = Math.min(bucketCount, step - this.#newest);
    for (let back = 0; back < passed; back += 1) this.#empty(this.#rowOf(step - back));
    this.#newest = step;
  }

  #empty(row: CountsRow): void {
    add(this.#over, row, -1);
    add(this.#past, row, 1);
    row.numbers.fill(0, row.from, row.from + countsLength);
  }
}

/** In a row of its own. */
function sumOf(row: CountsRow, more: Float64Array): CountsRow {
  const numbers = more.slice();
  add(numbers, row, 1);
  return { numbers, from: 0 };
}

function add(sum: Float64Array, { numbers, from }: CountsRow, times: 1 | -1): void {
  for (let place = 0; place < countsLength; place += 1) {
    sum[place] = (sum[place] ?? 0) + times * (numbers[from + place] ?? 0);
  }
}

function stepOf(ms: number): number {
  return Math.floor(ms / bucketMs);
}
