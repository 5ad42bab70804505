import type { Endpoint } from '../model/endpoint.ts';

/** How much an endpoint was used. Times epoch ms, our clock. */
export interface EndpointUse {
  cluster: string;
  endpoint: Endpoint;
  lastUsedMs: number;
  /** Requests (HTTP attempts) and new TCP connections within the window. */
  uses: number;
}

/** The window is counted in so many parts, so that it moves smoothly enough. */
const parts = 10;

/** Sorting for each one that finds no room would be quadratic: so a share of all leaves at once. */
const shareThatLeaves = 1 / 20;

interface Counted {
  cluster: string;
  endpoint: Endpoint;
  lastUsedMs: number;
  /** How many uses of any endpoint there had been by then: the order of use is looked at only when one must leave. */
  turn: number;
  /** Per part of the window, by the part's number modulo `parts`. */
  counts: number[];
  /** The latest part that `counts` has. */
  part: number;
}

/** Which endpoints are used, and how much of late. Bounded: those unused for longest are forgotten first. */
export class EndpointActivity {
  readonly #partMs: number;
  readonly #max: number;
  /** By cluster, then by the endpoint's text: a lookup per use must not cost more with many of them. */
  readonly #byCluster = new Map<string, Map<string, Counted>>();
  #size = 0;
  #turns = 0;

  /** `windowMs`: how far back uses are counted. */
  constructor(options: { windowMs: number; maxEndpoints: number }) {
    this.#partMs = options.windowMs / parts;
    this.#max = options.maxEndpoints;
  }

  /** One request was sent to it, or one TCP connection was made. */
  used(cluster: string, endpoint: Endpoint, nowMs: number): void {
    const part = this.#partOf(nowMs);
    const counted = this.#find(cluster, endpoint) ?? this.#add(cluster, endpoint, nowMs);
    forgetOld(counted, part);
    const slot = part % parts;
    counted.counts[slot] = (counted.counts[slot] ?? 0) + 1;
    counted.lastUsedMs = nowMs;
    this.#takeTurn(counted);
  }

  /** Bytes moved on a connection to it. */
  moved(cluster: string, endpoint: Endpoint, nowMs: number): void {
    const counted = this.#find(cluster, endpoint);
    if (counted === undefined) return;
    counted.lastUsedMs = Math.max(counted.lastUsedMs, nowMs);
    this.#takeTurn(counted);
  }

  /** All that are remembered. */
  *uses(nowMs: number): Generator<EndpointUse> {
    const part = this.#partOf(nowMs);
    for (const counted of this.#all()) {
      forgetOld(counted, part);
      const { cluster, endpoint, lastUsedMs, counts } = counted;
      yield { cluster, endpoint, lastUsedMs, uses: counts.reduce((sum, count) => sum + count, 0) };
    }
  }

  #find(cluster: string, endpoint: Endpoint): Counted | undefined {
    return this.#byCluster.get(cluster)?.get(endpoint.text);
  }

  #add(cluster: string, endpoint: Endpoint, nowMs: number): Counted {
    if (this.#size >= this.#max) this.#forgetUnused();
    const counts = Array<number>(parts).fill(0);
    const counted = { cluster, endpoint, lastUsedMs: nowMs, turn: 0, counts, part: this.#partOf(nowMs) };
    const siblings = this.#byCluster.get(cluster) ?? new Map<string, Counted>();
    this.#byCluster.set(cluster, siblings.set(endpoint.text, counted));
    this.#size += 1;
    return counted;
  }

  #takeTurn(counted: Counted): void {
    this.#turns += 1;
    counted.turn = this.#turns;
  }

  #forgetUnused(): void {
    const longestUnused = [...this.#all()].toSorted((a, b) => a.turn - b.turn);
    for (const { cluster, endpoint } of longestUnused.slice(0, Math.ceil(this.#size * shareThatLeaves))) {
      const siblings = this.#byCluster.get(cluster);
      siblings?.delete(endpoint.text);
      if (siblings?.size === 0) this.#byCluster.delete(cluster);
      this.#size -= 1;
    }
  }

  *#all(): Generator<Counted> {
    for (const siblings of this.#byCluster.values()) yield* siblings.values();
  }

  #partOf(nowMs: number): number {
    return Math.floor(nowMs / this.#partMs);
  }
}

/** Empties the parts that the window has left behind; all of them when the clock was set. */
function forgetOld(counted: Counted, part: number): void {
  const passed = part - counted.part;
  if (passed === 0) return;
  if (passed < 0 || passed >= parts) counted.counts.fill(0);
  else for (let next = counted.part + 1; next <= part; next += 1) counted.counts[next % parts] = 0;
  counted.part = part;
}
