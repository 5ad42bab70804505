/** Less is the drift of a clock that is being corrected, or the time between reading the two. */
const leastMs = 1000;

/** Tells when our clock was set, by one that only runs. A process that was stopped for a while saw no clock being set. */
export class ClockWatch {
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  #apartMs: number;

  constructor(now: () => number, monotonicMs: () => number) {
    this.#now = now;
    this.#monotonicMs = monotonicMs;
    this.#apartMs = now() - monotonicMs();
  }

  /** How far it was set since the last call, ms: forward, or back if negative. 0: it was not. */
  takeSetMs(): number {
    const apartMs = this.#now() - this.#monotonicMs();
    const setMs = apartMs - this.#apartMs;
    if (Math.abs(setMs) < leastMs) return 0;
    this.#apartMs = apartMs;
    return setMs;
  }
}
