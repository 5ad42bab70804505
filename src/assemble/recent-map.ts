/**
 * Remembers what was used lately: at least half of `max`, at most `max`. In two generations, as `RecentKeys`: where most
 * of what comes is new, letting go of the oldest one at a time costs more than all the rest.
 */
export class RecentMap<Value> {
  readonly #perGeneration: number;
  #now = new Map<string, Value>();
  #before: ReadonlyMap<string, Value> = new Map();

  constructor(max: number) {
    this.#perGeneration = Math.ceil(max / 2);
  }

  /** At most this many; what is in both generations counts twice. */
  get size(): number {
    return this.#now.size + this.#before.size;
  }

  get(key: string): Value | undefined {
    const recent = this.#now.get(key);
    if (recent !== undefined) return recent;
    const older = this.#before.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, value: Value): void {
    if (this.#now.size >= this.#perGeneration && !this.#now.has(key)) {
      this.#before = this.#now;
      this.#now = new Map();
    }
    this.#now.set(key, value);
  }
}
