/** The longest an entry waits in Envoy before it is sent: `buffer_flush_interval` (1 s by default) and some slack, ms. */
const longestBufferingMs = 1500;

/**
 * Envoy's clock against ours, per log stream. Every entry ended at a known Envoy time and came at a known time of
 * ours; the smallest difference bounds the offset from above, and from below less the longest buffering.
 */
export class ClockOffset {
  #smallestMs = Number.POSITIVE_INFINITY;

  /** An entry that ended at `endedMs` (Envoy's clock, epoch ms) came at `receivedMs` (ours). */
  observe(endedMs: number, receivedMs: number): void {
    this.#smallestMs = Math.min(this.#smallestMs, receivedMs - endedMs);
  }

  /** To add to an Envoy time, ms. 0 where equal clocks explain what was seen. */
  get offsetMs(): number {
    if (!Number.isFinite(this.#smallestMs)) return 0;
    if (this.#smallestMs < 0) return this.#smallestMs;
    return Math.max(0, this.#smallestMs - longestBufferingMs);
  }

  /** How wrong `offsetMs` can be, either way, ms. */
  get uncertaintyMs(): number {
    return Number.isFinite(this.#smallestMs)
      ? Math.min(longestBufferingMs, Math.abs(this.#smallestMs))
      : longestBufferingMs;
  }
}
