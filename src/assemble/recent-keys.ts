/**
 * Remembers the latest keys: at least half of `max`, at most `max`. In two generations, because a `Set` that loses its
 * first member at each insertion walks over all the places that earlier ones left.
 */
export class RecentKeys {
  readonly #perGeneration: number;
  #now = new Set<string>();
  #before: ReadonlySet<string> = new Set();

  constructor(max: number) {
    this.#perGeneration = Math.ceil(max / 2);
  }

  add(key: string): void {
    if (this.#now.size >= this.#perGeneration) {
      this.#before = this.#now;
      this.#now = new Set();
    }
    this.#now.add(key);
  }

  has(key: string): boolean {
    return this.#now.has(key) || this.#before.has(key);
  }
}
