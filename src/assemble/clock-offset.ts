/**
 * Envoy's clock against ours, per log stream. Every entry ended at a known Envoy time and came at a known time of
 * ours; the smallest difference bounds the offset from above, and from below less the longest buffering.
 */
export class ClockOffset {
  readonly #longestBufferingMs: number;
  #smallestMs = Number.POSITIVE_INFINITY;

  /** `longestBufferingMs`: how long an entry waits in Envoy at most before it is sent. */
  constructor(longestBufferingMs: number) {
    this.#longestBufferingMs = longestBufferingMs;
  }

  /** An entry that ended at `endedMs` (Envoy's clock, epoch ms) came at `receivedMs` (ours). */
  observe(endedMs: number, receivedMs: number): void {
    this.#smallestMs = Math.min(this.#smallestMs, receivedMs - endedMs);
  }

  /** To add to an Envoy time, ms. 0 where equal clocks explain what was seen. */
  get offsetMs(): number {
    if (this.#smallestMs === Number.POSITIVE_INFINITY) return 0;
    return Math.min(this.#smallestMs, Math.max(0, this.#smallestMs - this.#longestBufferingMs));
  }

  /** How wrong `offsetMs` can be, either way, ms. Infinite before the first entry. */
  get uncertaintyMs(): number {
    const above = this.#smallestMs - this.offsetMs;
    return Math.max(above, this.#longestBufferingMs - above);
  }
}
