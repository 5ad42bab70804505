import { ROOT_CONTEXT, type SpanContext } from '@opentelemetry/api';
import { SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace';
import { judgedAttempt } from '../../model/exchange.ts';
import type { Reporter } from '../../model/reporter.ts';
import type { JudgedExchange, Pin } from '../../model/verdict.ts';
import type { SelfMetrics } from '../metrics/self-metrics.ts';
import type { IsPinExpected } from '../pin-expected.ts';
import type { TaggedResponse } from '../tagged-response.ts';
import { toHrTime } from '../time.ts';
import { attemptPlan, exchangePlan, type SpanPlan } from './exchange-span.ts';
import type { ChosenIds } from './ids.ts';
import { type Decision, decide, isStale, type KeptReason, keptReason } from './keep.ts';
import { type Placement, placementOf } from './parent.ts';
import type { PinSpans } from './pin-spans.ts';
import { startSpan } from './start-span.ts';
import { taggedPlan } from './tagged-span.ts';
import { type BucketLimits, TokenBuckets } from './token-buckets.ts';
import type { WorkloadTracers } from './workload-tracers.ts';

export interface Sampling {
  /** Share of the traces that begin here which is sampled, 0 to 1; by trace id, so that all replicas agree. */
  ratio: number;
  /** For exchanges that are kept although unsampled, per (cluster, outcome). */
  kept: BucketLimits;
  /** An exchange that lasts longer is kept as slow, ms. */
  slowMs: (cluster: string | undefined) => number;
  /** Such pins are no reason to keep anything. */
  isPinExpected: IsPinExpected;
}

export interface SpanWriterOptions {
  tracers: WorkloadTracers;
  ids: ChosenIds;
  sampling: Sampling;
  /** Where an exchange finds the span of its pin. */
  pins: Pick<PinSpans, 'spanOf'>;
  self: SelfMetrics;
}

/** Decides which exchanges become spans, and writes them. Never throws. */
export class SpanWriter {
  readonly #options: SpanWriterOptions;
  readonly #buckets: TokenBuckets;
  readonly #ratio: TraceIdRatioBasedSampler;

  constructor(options: SpanWriterOptions) {
    this.#options = options;
    this.#buckets = new TokenBuckets(options.sampling.kept);
    this.#ratio = new TraceIdRatioBasedSampler(options.sampling.ratio);
  }

  /** The trace id, if spans were made. `nowMs`: epoch ms, our clock. */
  exchange(judged: JudgedExchange, nowMs: number): string | undefined {
    const { exchange, verdict } = judged;
    const { cluster, durationMs } = exchange;
    const place = this.#rooted(placementOf(exchange));
    const { outcome, failedBeforeAbort, failedPhase } = verdict;
    const slowMs = this.#options.sampling.slowMs(cluster);
    const pin = verdict.pin?.pin;
    const pinExpected = this.#isPinExpected(pin, cluster);
    const reason = keptReason({ outcome, failedBeforeAbort, failedPhase, pin, pinExpected, durationMs, slowMs });
    const decision = this.#decide(place, reason, `${cluster ?? ''}\n${outcome}`, nowMs);
    if (!this.#counted(decision, 1 + exchange.attempts.length)) return undefined;
    const attempts = exchange.attempts.map((attempt, index) =>
      attemptPlan(judged, index, attempt, place.attemptsByEnvoy),
    );
    const plan = exchangePlan(judged, place.underEnvoy, this.#pinSpan(judged));
    return this.#write(exchange.reporter, place, plan, attempts, decision);
  }

  /** One span, of profile `tag`. */
  tagged(tagged: TaggedResponse, nowMs: number): string | undefined {
    const { facts, pin } = tagged;
    const { cluster, requestStartMs, traceparent, injected } = facts;
    const place = this.#rooted(placementOf({ traceparent, injected, envoyTraceId: undefined, envoySpanId: undefined }));
    const durationMs = requestStartMs === undefined ? undefined : nowMs - requestStartMs;
    const slowMs = this.#options.sampling.slowMs(cluster);
    const reason = keptReason({
      outcome: 'unknown',
      failedBeforeAbort: false,
      failedPhase: undefined,
      pin: pin.pin,
      pinExpected: this.#isPinExpected(pin.pin, cluster),
      durationMs,
      slowMs,
    });
    const decision = this.#decide(place, reason, `${cluster ?? ''}\nunknown`, nowMs);
    if (!this.#counted(decision, 1)) return undefined;
    return this.#write(facts.reporter, place, taggedPlan(tagged, nowMs), [], decision);
  }

  /** A root has its trace id before the decision, which is made by it. */
  #rooted(place: Placement): Placement {
    if (place.parent !== undefined || place.traceId !== undefined) return place;
    return { ...place, traceId: this.#options.ids.randomTraceId() };
  }

  #decide(place: Placement, reason: KeptReason | undefined, bucket: string, nowMs: number): Decision {
    const sampled = place.sampled ?? this.#byRatio(place.parent?.traceId ?? place.traceId ?? '');
    return decide(sampled, reason, () => this.#buckets.take(bucket, nowMs));
  }

  #byRatio(traceId: string): boolean {
    return this.#ratio.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
  }

  #isPinExpected(pin: Pin | undefined, cluster: string | undefined): boolean {
    return pin !== undefined && isStale(pin) && this.#options.sampling.isPinExpected(cluster);
  }

  #pinSpan({ exchange, verdict }: JudgedExchange): SpanContext | undefined {
    const used = judgedAttempt(exchange);
    const cluster = used?.cluster ?? exchange.cluster;
    if (verdict.pin === undefined || !isStale(verdict.pin.pin)) return undefined;
    if (cluster === undefined || used?.connectionId === undefined) return undefined;
    const { reporter } = exchange;
    return this.#options.pins.spanOf({ reporter, cluster, peer: used.peer, connectionId: used.connectionId });
  }

  #counted(decision: Decision, spans: number): boolean {
    if (decision.kept) this.#options.self.spansKept(decision.why, spans);
    else this.#options.self.spansDropped(decision.why, spans);
    return decision.kept;
  }

  #write(
    reporter: Reporter,
    place: Placement,
    plan: SpanPlan,
    attempts: readonly SpanPlan[],
    { why }: Decision,
  ): string {
    const tracer = this.#options.tracers.get(reporter);
    this.#options.ids.choose({ traceId: place.traceId, spanId: place.spanId });
    const kept = why === 'sampled' ? undefined : why;
    const span = startSpan(tracer, place.parent, { ...plan, facts: { ...plan.facts, 'sidelight.kept_reason': kept } });
    for (const attempt of attempts) startSpan(tracer, span.spanContext(), attempt).end(toHrTime(attempt.endMs));
    span.end(toHrTime(plan.endMs));
    return span.spanContext().traceId;
  }
}
