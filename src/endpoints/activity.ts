import { LRUCache } from 'lru-cache';
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

interface Counted {
  cluster: string;
  endpoint: Endpoint;
  lastUsedMs: number;
  /** Per part of the window, by the part's number modulo `parts`. */
  counts: number[];
  /** The latest part that `counts` has. */
  part: number;
}

/** Which endpoints are used, and how much of late. Bounded: the one unused for longest is forgotten first. */
export class EndpointActivity {
  readonly #partMs: number;
  /** By cluster and endpoint: a lookup per use must not cost more with many of them. */
  readonly #byKey: LRUCache<string, Counted>;

  /** `windowMs`: how far back uses are counted. */
  constructor(options: { windowMs: number; maxEndpoints: number }) {
    this.#partMs = options.windowMs / parts;
    this.#byKey = new LRUCache({ max: options.maxEndpoints });
  }

  /** One request was sent to it, or one TCP connection was made. */
  used(cluster: string, endpoint: Endpoint, nowMs: number): void {
    const key = keyOf(cluster, endpoint.text);
    const part = this.#partOf(nowMs);
    let counted = this.#byKey.get(key);
    if (counted === undefined) {
      counted = { cluster, endpoint, lastUsedMs: nowMs, counts: Array<number>(parts).fill(0), part };
      this.#byKey.set(key, counted);
    }
    forgetOld(counted, part);
    const slot = part % parts;
    counted.counts[slot] = (counted.counts[slot] ?? 0) + 1;
    counted.lastUsedMs = nowMs;
  }

  /** Bytes moved on a connection to it. */
  moved(cluster: string, endpoint: Endpoint, nowMs: number): void {
    const counted = this.#byKey.get(keyOf(cluster, endpoint.text));
    if (counted !== undefined) counted.lastUsedMs = Math.max(counted.lastUsedMs, nowMs);
  }

  /** All that are remembered. */
  *uses(nowMs: number): Generator<EndpointUse> {
    const part = this.#partOf(nowMs);
    for (const counted of this.#byKey.values()) {
      forgetOld(counted, part);
      const { cluster, endpoint, lastUsedMs, counts } = counted;
      yield { cluster, endpoint, lastUsedMs, uses: counts.reduce((sum, count) => sum + count, 0) };
    }
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

function keyOf(cluster: string, endpoint: string): string {
  return `${cluster}\n${endpoint}`;
}
