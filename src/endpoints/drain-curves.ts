import { LRUCache } from 'lru-cache';
import type { DrainCurve, DrainPoint, DrainReporter } from '../model/endpoint-report.ts';
import type { Reporter } from '../model/reporter.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';

/** What went to an endpoint after it left. */
export interface DrainUse {
  connection: UpstreamConnection;
  leftAtMs: number;
  /** When, our clock. */
  atMs: number;
  requests: number;
  bytes: number;
}

const firstBucketMs = 1000;
const longest = { total: 240, reporter: 30 };
/** Reporters with a curve of their own; what others send is in the total alone. */
const maxReporters = 50;

/**
 * Per endpoint that left: what still went there, over time and by reporter. Bounded: a curve that grows too long halves
 * its resolution, and of the endpoints the one unused for longest is forgotten first.
 */
export class DrainCurves {
  readonly #byEndpoint: LRUCache<string, Curve>;

  constructor(maxEndpoints: number) {
    this.#byEndpoint = new LRUCache({ max: maxEndpoints });
  }

  add(use: DrainUse): void {
    const { cluster, peer } = use.connection;
    const key = keyOf(cluster, peer.text);
    let curve = this.#byEndpoint.get(key);
    // It came back and left again: that is another drain.
    if (curve?.leftAtMs !== use.leftAtMs) {
      curve = new Curve(use.leftAtMs);
      this.#byEndpoint.set(key, curve);
    }
    curve.add(use);
  }

  /** `undefined`: nothing went there since then. */
  curve(cluster: string, endpoint: string, leftAtMs: number): DrainCurve | undefined {
    const curve = this.#byEndpoint.peek(keyOf(cluster, endpoint));
    return curve?.leftAtMs === leftAtMs ? curve.report() : undefined;
  }
}

function keyOf(cluster: string, endpoint: string): string {
  return `${cluster}\n${endpoint}`;
}

class Curve {
  readonly leftAtMs: number;
  readonly #total: Buckets;
  readonly #reporters = new Map<string, { reporter: Reporter; buckets: Buckets }>();

  constructor(leftAtMs: number) {
    this.leftAtMs = leftAtMs;
    this.#total = new Buckets(leftAtMs, longest.total);
  }

  add(use: DrainUse): void {
    this.#total.add(use);
    const { reporter } = use.connection;
    const id = [reporter.kind, reporter.nodeId, reporter.pod, reporter.workload].join('|');
    let own = this.#reporters.get(id);
    if (own === undefined && this.#reporters.size < maxReporters) {
      own = { reporter, buckets: new Buckets(this.leftAtMs, longest.reporter) };
      this.#reporters.set(id, own);
    }
    own?.buckets.add(use);
  }

  report(): DrainCurve {
    const { requests, bytes, lastUsedMs, bucketMs } = this.#total;
    return { requests, bytes, lastUsedMs, bucketMs, points: this.#total.points(), reporters: this.#byUse() };
  }

  #byUse(): DrainReporter[] {
    return [...this.#reporters.values()]
      .map(({ reporter, buckets }) => ({
        reporter,
        requests: buckets.requests,
        bytes: buckets.bytes,
        lastUsedMs: buckets.lastUsedMs ?? this.leftAtMs,
        bucketMs: buckets.bucketMs,
        points: buckets.points(),
      }))
      .toSorted((a, b) => b.requests - a.requests || b.bytes - a.bytes);
  }
}

interface Bucket {
  requests: number;
  bytes: number;
  /** Of the bucket that is being filled; of an older one only their number is kept. */
  serials: Set<number>;
  connections: number;
}

class Buckets {
  readonly #startMs: number;
  readonly #longest: number;
  /** By number since `#startMs`. */
  #buckets = new Map<number, Bucket>();
  bucketMs = firstBucketMs;
  requests = 0;
  bytes = 0;
  lastUsedMs: number | undefined;

  constructor(startMs: number, longestCurve: number) {
    this.#startMs = startMs;
    this.#longest = longestCurve;
  }

  add({ connection, atMs, requests, bytes }: DrainUse): void {
    this.requests += requests;
    this.bytes += bytes;
    this.lastUsedMs = Math.max(this.lastUsedMs ?? atMs, atMs);
    while (this.#numberOf(atMs) >= this.#longest) this.#halve();
    const bucket = this.#bucket(this.#numberOf(atMs));
    bucket.requests += requests;
    bucket.bytes += bytes;
    bucket.serials.add(connection.serial);
    bucket.connections = Math.max(bucket.connections, bucket.serials.size);
  }

  points(): DrainPoint[] {
    return [...this.#buckets]
      .toSorted(([a], [b]) => a - b)
      .map(([number, { requests, bytes, connections }]) => ({
        atMs: this.#startMs + number * this.bucketMs,
        requests,
        bytes,
        connections,
      }));
  }

  #numberOf(atMs: number): number {
    return Math.max(0, Math.floor((atMs - this.#startMs) / this.bucketMs));
  }

  #bucket(number: number): Bucket {
    const known = this.#buckets.get(number);
    if (known !== undefined) return known;
    // What is under way is told late, by some seconds at most: older buckets are done.
    for (const [at, bucket] of this.#buckets) if (at < number - 10) bucket.serials.clear();
    const fresh = { requests: 0, bytes: 0, serials: new Set<number>(), connections: 0 };
    this.#buckets.set(number, fresh);
    return fresh;
  }

  /** Two buckets become one; of the connections of both only the greater number is still known. */
  #halve(): void {
    this.bucketMs *= 2;
    const before = this.#buckets;
    this.#buckets = new Map();
    for (const [number, from] of before) {
      const into = this.#bucket(Math.floor(number / 2));
      into.requests += from.requests;
      into.bytes += from.bytes;
      for (const serial of from.serials) into.serials.add(serial);
      into.connections = Math.max(into.connections, from.connections, into.serials.size);
    }
  }
}
