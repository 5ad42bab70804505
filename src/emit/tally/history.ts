import { type CountsRow, countsLength, readTrend, type Trend } from './counts.ts';

/** One step of a sparkline, ms. */
export const bucketMs = 10_000;
/** 15 minutes. */
const bucketCount = 90;

/** The counts of the last 15 minutes of one cluster, in steps of ten seconds. 11 kB, whatever is counted. */
export class History {
  readonly #numbers = new Uint32Array(countsLength * bucketCount);
  /** All steps together, kept up so that a reader need not add up thousands of numbers a second. */
  readonly #sum: CountsRow = { numbers: new Float64Array(countsLength), from: 0 };
  /** Number of the newest step, since the epoch. */
  #newest: number;

  constructor(nowMs: number) {
    this.#newest = stepOf(nowMs);
  }

  /** Where to count what happens now: in each of them. */
  rows(nowMs: number): [CountsRow, CountsRow] {
    this.#advance(nowMs);
    return [this.#sum, this.#rowOf(this.#newest)];
  }

  /** All of it in one row. */
  sum(nowMs: number): CountsRow {
    this.#advance(nowMs);
    return this.#sum;
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
    const passed = Math.min(bucketCount, step - this.#newest);
    for (let back = 0; back < passed; back += 1) this.#empty(this.#rowOf(step - back));
    this.#newest = Math.max(this.#newest, step);
  }

  #empty({ numbers, from }: CountsRow): void {
    const sum = this.#sum.numbers;
    for (let place = 0; place < countsLength; place += 1) sum[place] = (sum[place] ?? 0) - (numbers[from + place] ?? 0);
    numbers.fill(0, from, from + countsLength);
  }
}

function stepOf(ms: number): number {
  return Math.floor(ms / bucketMs);
}
