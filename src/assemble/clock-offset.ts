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

/** How many beats are remembered, once or twice over: a clock that was set is believed after that. */
const windowBeats = 20;

/** What was heard for a while. */
interface Window {
  sinceMs: number;
  smallestMs: number;
  /** Entries that ended far enough from each other. */
  entries: number;
}

/**
 * Envoy's clock against ours, per log stream. Every entry ended at a known Envoy time and came at a known time of
 * ours; the smallest difference of late bounds the offset from above, and from below less what that entry was kept back.
 */
export class ClockOffset {
  readonly #longestBufferingMs: number;
  #before: Window = emptyWindow(0);
  #now: Window = emptyWindow(0);
  #lastCountedMs = Number.NEGATIVE_INFINITY;

  /** `longestBufferingMs`: how long an entry waits in Envoy at most before it is sent. */
  constructor(longestBufferingMs: number) {
    this.#longestBufferingMs = longestBufferingMs;
  }

  /** An entry that ended at `endedMs` (Envoy's clock, epoch ms) came at `receivedMs` (ours). */
  observe(endedMs: number, receivedMs: number): void {
    if (Math.abs(receivedMs - this.#now.sinceMs) > this.#longestBufferingMs * windowBeats) {
      this.#before = this.#now;
      this.#now = emptyWindow(receivedMs);
    }
    this.#now.smallestMs = Math.min(this.#now.smallestMs, receivedMs - endedMs);
    if (Math.abs(endedMs - this.#lastCountedMs) < this.#longestBufferingMs * burstShare) return;
    this.#lastCountedMs = endedMs;
    this.#now.entries += 1;
  }

  /** To add to an Envoy time, ms. 0 where equal clocks explain what was seen. */
  get offsetMs(): number {
    const smallestMs = this.#smallestMs;
    const equal = smallestMs >= 0 && smallestMs <= this.#keptBackMs;
    return equal ? 0 : smallestMs;
  }

  /** How wrong `offsetMs` can be, either way, ms. Infinite before the first entry. */
  get uncertaintyMs(): number {
    if (this.#entries === 0) return Number.POSITIVE_INFINITY;
    const above = this.#smallestMs - this.offsetMs;
    return Math.max(above, this.#keptBackMs - above);
  }

  get #smallestMs(): number {
    return Math.min(this.#before.smallestMs, this.#now.smallestMs);
  }

  get #entries(): number {
    return this.#before.entries + this.#now.entries;
  }

  /** How long the luckiest entry waited at most. */
  get #keptBackMs(): number {
    if (this.#entries === 0) return Number.POSITIVE_INFINITY;
    return this.#longestBufferingMs * Math.min(1, badLuck / this.#entries);
  }
}

function emptyWindow(sinceMs: number): Window {
  return { sinceMs, smallestMs: Number.POSITIVE_INFINITY, entries: 0 };
}
