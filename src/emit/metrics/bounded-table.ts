/** How long an entry keeps its place in the order of use without being moved: spares a map write per observation. */
const orderGrainMs = 1000;

interface Entry<V> {
  value: V;
  usedMs: number;
}

/**
 * A table with room for `max` entries. A new one takes the place of the least recently used, but only if that has been
 * idle for `idleMs`: under a flood of keys what is in use keeps its place. Times are epoch ms, given by the caller.
 */
export class BoundedTable<V> {
  readonly #max: number;
  readonly #idleMs: number;
  readonly #onDrop: (value: V) => void;
  /** In order of use, as exact as the grain. */
  readonly #entries = new Map<string, Entry<V>>();

  constructor(max: number, idleMs: number, onDrop: (value: V) => void) {
    this.#max = max;
    this.#idleMs = idleMs;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The value of a key, made if need be. `undefined`: it is new, and all places are in use. */
  get(key: string, nowMs: number, make: () => V): V | undefined {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      if (Math.abs(nowMs - known.usedMs) >= orderGrainMs) this.#moveToEnd(key, known, nowMs);
      return known.value;
    }
    if (this.#entries.size >= this.#max && !this.#dropOldest(nowMs)) return undefined;
    const value = make();
    this.#entries.set(key, { value, usedMs: nowMs });
    return value;
  }

  /** Drops an entry without asking how idle it is. */
  drop(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#onDrop(entry.value);
  }

  *values(): IterableIterator<V> {
    for (const { value } of this.#entries.values()) yield value;
  }

  #moveToEnd(key: string, entry: Entry<V>, nowMs: number): void {
    entry.usedMs = nowMs;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
  }

  #dropOldest(nowMs: number): boolean {
    const oldest = this.#entries.entries().next().value;
    if (oldest === undefined) return false;
    // Our clock was set back: all count as used now, or none would give up its place until the clock is where it was.
    if (oldest[1].usedMs > nowMs)
      for (const entry of this.#entries.values()) entry.usedMs = Math.min(entry.usedMs, nowMs);
    if (nowMs - oldest[1].usedMs < this.#idleMs) return false;
    this.drop(oldest[0]);
    return true;
  }
}
