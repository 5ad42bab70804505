import type { SpanContext } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import type { ClearedPin, PinEvent, PinLife } from '../../model/pin-life.ts';
import type { UpstreamConnection } from '../../model/upstream-connection.ts';
import type { SelfMetrics } from '../metrics/self-metrics.ts';
import type { IsPinExpected } from '../pin-expected.ts';
import { toHrTime } from '../time.ts';
import type { SpanPlan } from './exchange-span.ts';
import type { ChosenIds } from './ids.ts';
import { decide, type KeptReason } from './keep.ts';
import { clearedPinPlan, stalePinPlan } from './pin-span.ts';
import { startSpan } from './start-span.ts';
import { type BucketLimits, TokenBuckets } from './token-buckets.ts';
import type { WorkloadTracers } from './workload-tracers.ts';

export interface PinSpansOptions {
  tracers: WorkloadTracers;
  ids: ChosenIds;
  /** Pins that get spans, per cluster. */
  kept: BucketLimits;
  /** Such pins get no spans. */
  isPinExpected: IsPinExpected;
  /** Pins whose span can be found; the least recently used leaves. */
  maxPins: number;
  self: SelfMetrics;
}

/** What tells one pinned connection from all others. */
export type PinnedPlace = Pick<UpstreamConnection, 'reporter' | 'cluster' | 'peer' | 'connectionId'>;

interface Written {
  serial: number;
  span: SpanContext;
  why: KeptReason;
  /** When it was seen stale. */
  seenMs: number;
  cleared: boolean;
}

/**
 * Each stale pin has a trace of its own: a span from the moment its endpoint left to when it was seen stale, and under
 * it, once it is over, another to its end. Exchanges find it here, also a while after that: they are judged later.
 */
export class PinSpans {
  readonly #options: PinSpansOptions;
  readonly #buckets: TokenBuckets;
  readonly #written: LRUCache<string, Written>;

  constructor(options: PinSpansOptions) {
    this.#options = options;
    this.#buckets = new TokenBuckets(options.kept);
    this.#written = new LRUCache({ max: options.maxPins });
  }

  /** The span of a stale pin, if it has one. */
  spanOf(place: PinnedPlace): SpanContext | undefined {
    return this.#written.get(keyOf(place))?.span;
  }

  /** Something happened to a pin. `nowMs`: epoch ms, our clock. Never throws. */
  event(event: PinEvent, life: PinLife | ClearedPin, nowMs: number): void {
    const written = this.#written.get(keyOf(life.connection));
    const own = written?.serial === life.connection.serial && !written.cleared ? written : undefined;
    if ('how' in life) this.#cleared(life, own);
    // It may become stale more than once, and is one pin all the same.
    else if (event !== 'opened' && event !== 'cleared' && own === undefined) this.#stale(event, life, nowMs);
  }

  #stale(pin: 'stale' | 'stale_view', life: PinLife, nowMs: number): void {
    const { self, isPinExpected } = this.#options;
    const { cluster, serial } = life.connection;
    const reason = isPinExpected(cluster) ? undefined : pin;
    const { kept, why } = decide(false, reason, () => this.#buckets.take(cluster, nowMs));
    if (!kept) {
      // The span of its end will not be made either.
      self.spansDropped(why, 2);
      return;
    }
    const span = this.#write(life, undefined, stalePinPlan(life, nowMs), pin);
    this.#written.set(keyOf(life.connection), { serial, span, why: pin, seenMs: nowMs, cleared: false });
  }

  #cleared(pin: ClearedPin, written: Written | undefined): void {
    if (written === undefined) return;
    this.#write(pin, written.span, clearedPinPlan(pin, written.seenMs), written.why);
    written.cleared = true;
  }

  #write({ connection }: PinLife, parent: SpanContext | undefined, plan: SpanPlan, why: KeptReason): SpanContext {
    this.#options.self.spansKept(why, 1);
    this.#options.ids.choose({ traceId: undefined, spanId: undefined });
    const span = startSpan(this.#options.tracers.get(connection.reporter), parent, plan);
    span.end(toHrTime(plan.endMs));
    return span.spanContext();
  }
}

function keyOf({ reporter, cluster, peer, connectionId }: PinnedPlace): string {
  return `${reporter.nodeId}\n${cluster}\n${peer.text}\n${connectionId}`;
}
