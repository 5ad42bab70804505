/** A value, where it is, and when it was used. */
interface Entry<V> {
  value: V;
  shelf: Shelf<V>;
  key: string;
  /** In whole seconds: such a number is in the entry itself, one with ms is an object of its own, elsewhere in memory. */
  usedSeconds: number;
}

/** One part of a table, with keys of its own. Only the table writes into it. */
export type Shelf<V> = Map<string, Entry<V>>;

/** Time between two looks at all entries for idle ones, ms: under a flood of new keys every one would ask for it. */
const lookEveryMs = 1000;

/**
 * A table with room for `max` entries on any number of shelves. A new one takes the place of the least recently used,
 * but only if that has been idle for `idleMs`, to the second: under a flood of keys what is in use keeps its place. Times
 * are epoch ms, given by the caller. Use is only noted, not kept in order: what is in use is used often, and what
 * leaves leaves seldom.
 */
export class BoundedTable<V> {
  readonly #max: number;
  readonly #idleMs: number;
  readonly #onDrop: (value: V) => void;
  readonly #entries = new Set<Entry<V>>();
  /** Those that were idle at the last look, the longest so last. */
  #idle: Entry<V>[] = [];
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(max: number, idleMs: number, onDrop: (value: V) => void) {
    this.#max = max;
    this.#idleMs = idleMs;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The value of a key on a shelf, made if need be. `undefined`: it is new, and all places are in use. */
  get(shelf: Shelf<V>, key: string, nowMs: number, make: () => V): V | undefined {
    const known = shelf.get(key);
    if (known !== undefined) {
      known.usedSeconds = toSeconds(nowMs);
      return known.value;
    }
    if (this.#entries.size >= this.#max && !this.#dropIdlest(nowMs)) return undefined;
    const entry = { value: make(), shelf, key, usedSeconds: toSeconds(nowMs) };
    shelf.set(key, entry);
    this.#entries.add(entry);
    return entry.value;
  }

  /** Drops all of a shelf without asking how idle it is. */
  clear(shelf: Shelf<V>): void {
    for (const entry of shelf.values()) this.#drop(entry);
  }

  *values(): IterableIterator<V> {
    for (const { value } of this.#entries) yield value;
  }

  #drop(entry: Entry<V>): void {
    entry.shelf.delete(entry.key);
    this.#entries.delete(entry);
    this.#onDrop(entry.value);
  }

  #dropIdlest(nowMs: number): boolean {
    if (this.#idle.length === 0) this.#lookForIdle(nowMs);
    for (let entry = this.#idle.pop(); entry !== undefined; entry = this.#idle.pop()) {
      if (!this.#entries.has(entry) || !this.#isIdle(entry, nowMs)) continue;
      this.#drop(entry);
      return true;
    }
    return false;
  }

  #lookForIdle(nowMs: number): void {
    if (Math.abs(nowMs - this.#lookedMs) < lookEveryMs) return;
    this.#lookedMs = nowMs;
    // If our clock was set back, all count as used now, or none would give up its place until the clock is where it was.
    for (const entry of this.#entries) entry.usedSeconds = Math.min(entry.usedSeconds, toSeconds(nowMs));
    this.#idle = [...this.#entries]
      .filter((entry) => this.#isIdle(entry, nowMs))
      .toSorted((a, b) => b.usedSeconds - a.usedSeconds);
  }

  #isIdle({ usedSeconds }: Entry<V>, nowMs: number): boolean {
    return nowMs - usedSeconds * 1000 >= this.#idleMs;
  }
}

function toSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}
