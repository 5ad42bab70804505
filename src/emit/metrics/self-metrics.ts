import type { IncompleteReason } from '../../model/exchange.ts';
import { type JoinEvent, joinEvents } from '../../model/join-event.ts';
import { attribute as a } from '../attributes.ts';
import { metrics } from '../names.ts';
import { Scope } from './series.ts';
import type { BoundedLabel } from './series-table.ts';

export type StreamKind = 'ext_proc' | 'access_log';
export type Signal = 'traces' | 'metrics';

export type SpanDrop = 'unsampled' | 'rate_limited' | 'queue_full' | 'export_failed';

const streamKinds: readonly StreamKind[] = ['ext_proc', 'access_log'];
const labels: readonly BoundedLabel[] = ['reporter', 'cluster', 'endpoint'];
const drops: readonly SpanDrop[] = ['unsampled', 'rate_limited', 'queue_full', 'export_failed'];

/** Sidelight about itself. Every method is a count; none throws. */
export class SelfMetrics {
  readonly scope = new Scope({});
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    const nowMs = now();
    for (const stream of streamKinds) {
      for (const metric of [metrics.selfStreams, metrics.selfMessages, metrics.selfDecodeErrors])
        this.scope.add(metric, nowMs, { [a.stream]: stream }, 0);
    }
    for (const label of labels) this.scope.add(metrics.selfLabelOverflow, nowMs, { [a.label]: label }, 0);
    for (const event of joinEvents) this.scope.add(metrics.selfJoinEvents, nowMs, { [a.event]: event }, 0);
    for (const reason of drops) this.scope.add(metrics.selfSpansDropped, nowMs, { [a.reason]: reason }, 0);
    this.scope.add(metrics.selfAttemptMismatches, nowMs, {}, 0);
  }

  streamOpened(stream: StreamKind): void {
    this.scope.add(metrics.selfStreams, this.#now(), { [a.stream]: stream });
  }

  streamClosed(stream: StreamKind): void {
    this.scope.add(metrics.selfStreams, this.#now(), { [a.stream]: stream }, -1);
  }

  message(stream: StreamKind): void {
    this.scope.add(metrics.selfMessages, this.#now(), { [a.stream]: stream });
  }

  decodeError(stream: StreamKind): void {
    this.scope.add(metrics.selfDecodeErrors, this.#now(), { [a.stream]: stream });
  }

  /** `limit`: the bound's name, from a fixed set in the code, never from input. */
  refused(limit: string, inputs = 1): void {
    this.scope.add(metrics.selfRefused, this.#now(), { [a.limit]: limit }, inputs);
  }

  /** From a message to its answer, ms. */
  tagDuration(durationMs: number): void {
    this.scope.observe(metrics.selfTagDuration, this.#now(), durationMs / 1000);
  }

  /** An answer changed nothing. `reason`: from a fixed set in the code. */
  failOpen(reason: string): void {
    this.scope.add(metrics.selfFailOpen, this.#now(), { [a.reason]: reason });
  }

  joinEvent(event: JoinEvent): void {
    this.scope.add(metrics.selfJoinEvents, this.#now(), { [a.event]: event });
  }

  incomplete(reason: IncompleteReason): void {
    this.scope.add(metrics.selfIncomplete, this.#now(), { [a.reason]: reason });
  }

  attemptCountMismatch(): void {
    this.scope.add(metrics.selfAttemptMismatches, this.#now());
  }

  spansKept(reason: string, spans: number): void {
    this.scope.add(metrics.selfSpansKept, this.#now(), { [a.reason]: reason }, spans);
  }

  spansDropped(reason: SpanDrop, spans: number): void {
    this.scope.add(metrics.selfSpansDropped, this.#now(), { [a.reason]: reason }, spans);
  }

  exported(signal: Signal, result: 'ok' | 'failed'): void {
    this.scope.add(metrics.selfExports, this.#now(), { [a.signal]: signal, [a.result]: result });
  }

  labelOverflow(label: BoundedLabel): void {
    this.scope.add(metrics.selfLabelOverflow, this.#now(), { [a.label]: label });
  }
}
