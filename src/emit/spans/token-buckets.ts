import { LRUCache } from 'lru-cache';

export interface BucketLimits {
  /** Tokens that come back each second. */
  perSecond: number;
  /** Tokens of a full bucket. */
  burst: number;
  /** Buckets held; the least recently used leaves, and would start full again. */
  buckets: number;
}

/** A token bucket per key. Times are epoch ms, given by the caller; a clock that is set back gives nothing. */
export class TokenBuckets {
  readonly #limits: BucketLimits;
  readonly #buckets: LRUCache<string, { tokens: number; atMs: number }>;

  constructor(limits: BucketLimits) {
    this.#limits = limits;
    this.#buckets = new LRUCache({ max: limits.buckets });
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one; false if there is none. */
  take(key: string, nowMs: number): boolean {
    const { perSecond, burst } = this.#limits;
    const bucket = this.#buckets.get(key) ?? { tokens: burst, atMs: nowMs };
    const gained = (Math.max(0, nowMs - bucket.atMs) / 1000) * perSecond;
    const tokens = Math.min(burst, bucket.tokens + gained);
    const taken = tokens >= 1;
    this.#buckets.set(key, { tokens: taken ? tokens - 1 : tokens, atMs: nowMs });
    return taken;
  }
}
