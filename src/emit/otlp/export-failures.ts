import type { Signal } from '../metrics/self-metrics.ts';

/** An export that failed, and how many like it were not told since the last that was. */
export interface ExportFailure {
  signal: Signal;
  error: Error | undefined;
  suppressed: number;
}

const quietMs = 30_000;

/** Tells at most one failure per signal each 30 s: a receiver that is away for a day is one line per half minute. */
export class ExportFailures {
  readonly #tell: (failure: ExportFailure) => void;
  readonly #now: () => number;
  readonly #told = new Map<Signal, { atMs: number; suppressed: number }>();

  constructor(tell: (failure: ExportFailure) => void, now: () => number) {
    this.#tell = tell;
    this.#now = now;
  }

  failed(signal: Signal, error: Error | undefined): void {
    const nowMs = this.#now();
    const last = this.#told.get(signal);
    if (last !== undefined && Math.abs(nowMs - last.atMs) < quietMs) {
      last.suppressed += 1;
      return;
    }
    this.#told.set(signal, { atMs: nowMs, suppressed: 0 });
    this.#tell({ signal, error, suppressed: last?.suppressed ?? 0 });
  }
}
