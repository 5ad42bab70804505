/**
 * Which endpoints left, and when. Immutable. What a list that changes often is made of must be cheap to make anew: a map
 * of 1000 is not (0.1 ms), so it is made when somebody looks.
 */
export class Departures {
  static readonly none = new Departures([]);
  readonly #entries: readonly Departure[];
  #byEndpoint: ReadonlyMap<string, number> | undefined;

  /** In the order of leaving, each endpoint once. */
  constructor(entries: readonly Departure[]) {
    this.#entries = entries;
  }

  /** In the order of leaving. */
  get byEndpoint(): ReadonlyMap<string, number> {
    this.#byEndpoint ??= new Map(this.#entries);
    return this.#byEndpoint;
  }

  [Symbol.iterator](): Iterator<Departure> {
    return this.#entries[Symbol.iterator]();
  }

  get lastMs(): number | undefined {
    return this.#entries.at(-1)?.[1];
  }

  /** Without those that came back, with those that left now; of all, the last `most`. */
  after(back: readonly string[], gone: readonly Departure[], most: number): Departures {
    if (back.length + gone.length === 0) return this;
    const returned = new Set(back);
    const away = back.length === 0 ? this.#entries : this.#entries.filter(([endpoint]) => !returned.has(endpoint));
    return new Departures([...away, ...gone.toSorted(([, a], [, b]) => a - b)].slice(-most));
  }
}

/** Epoch ms, our clock. */
type Departure = readonly [endpoint: string, leftAtMs: number];
