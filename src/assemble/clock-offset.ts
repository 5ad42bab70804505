/**
 * Envoy sends its buffer at a steady beat and entries end at any moment of it, so that of n entries the luckiest waited
 * about 1/n of the beat. It is allowed so many times that: with 5, one stream in 150 has worse luck.
 */
const badLuck = 5;

/**
 * Entries of a burst wait for the same sending, so that all are as good as one: only those are counted that ended such
 * a part of the beat after the one before.
 */
const burstShare = 1 / 50;

/**
 * Envoy's clock against ours, per log stream. Every entry ended at a known Envoy time and came at a known time of
 * ours; the smallest difference bounds the offset from above, and from below less what that entry was kept back.
 */
export class ClockOffset {
  readonly #longestBufferingMs: number;
  #smallestMs = Number.POSITIVE_INFINITY;
  /** Entries that ended far enough from each other. */
  #entries = 0;
  #lastCountedMs = Number.NEGATIVE_INFINITY;

  /** `longestBufferingMs`: how long an entry waits in Envoy at most before it is sent. */
  constructor(longestBufferingMs: number) {
    this.#longestBufferingMs = longestBufferingMs;
  }

  /** An entry that ended at `endedMs` (Envoy's clock, epoch ms) came at `receivedMs` (ours). */
  observe(endedMs: number, receivedMs: number): void {
    this.#smallestMs = Math.min(this.#smallestMs, receivedMs - endedMs);
    if (endedMs - this.#lastCountedMs < this.#longestBufferingMs * burstShare) return;
    this.#lastCountedMs = endedMs;
    this.#entries += 1;
  }

  /** To add to an Envoy time, ms. 0 where equal clocks explain what was seen. */
  get offsetMs(): number {
    const equal = this.#smallestMs >= 0 && this.#smallestMs <= this.#keptBackMs;
    return equal ? 0 : this.#smallestMs;
  }

  /** How wrong `offsetMs` can be, either way, ms. Infinite before the first entry. */
  get uncertaintyMs(): number {
    if (this.#entries === 0) return Number.POSITIVE_INFINITY;
    const above = this.#smallestMs - this.offsetMs;
    return Math.max(above, this.#keptBackMs - above);
  }

  /** How long the luckiest entry waited at most. */
  get #keptBackMs(): number {
    if (this.#entries === 0) return Number.POSITIVE_INFINITY;
    return this.#longestBufferingMs * Math.min(1, badLuck / this.#entries);
  }
}
