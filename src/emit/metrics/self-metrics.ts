import type { IncompleteReason } from '../../model/exchange.ts';
import { type JoinEvent, joinEvents } from '../../model/join-event.ts';
import { attribute as a, type Labels } from '../attributes.ts';
import { type Metric, metrics } from '../names.ts';
import { Layout } from './layout.ts';
import { Scope } from './series.ts';
import { seriesKind } from './series-kind.ts';
import type { BoundedLabel } from './series-table.ts';

export type StreamKind = 'ext_proc' | 'access_log';
export type Signal = 'traces' | 'metrics';

export type SpanDrop = 'unsampled' | 'rate_limited' | 'queue_full' | 'export_failed';

const streamKinds: readonly StreamKind[] = ['ext_proc', 'access_log'];
const labels: readonly BoundedLabel[] = ['reporter', 'cluster', 'endpoint'];
const drops: readonly SpanDrop[] = ['unsampled', 'rate_limited', 'queue_full', 'export_failed'];

const tagDuration = seriesKind(metrics.selfTagDuration);

/** Sidelight about itself. Every method is a count; none throws. */
export class SelfMetrics {
  readonly scope = new Scope({}, new Layout());
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    for (const stream of streamKinds) {
      for (const metric of [metrics.selfStreams, metrics.selfMessages, metrics.selfDecodeErrors])
        this.#add(metric, { [a.stream]: stream }, 0);
    }
    for (const label of labels) this.#add(metrics.selfLabelOverflow, { [a.label]: label }, 0);
    for (const event of joinEvents) this.#add(metrics.selfJoinEvents, { [a.event]: event }, 0);
    for (const reason of drops) this.#add(metrics.selfSpansDropped, { [a.reason]: reason }, 0);
    this.#add(metrics.selfAttemptMismatches, {}, 0);
  }

  streamOpened(stream: StreamKind): void {
    this.#add(metrics.selfStreams, { [a.stream]: stream });
  }

  streamClosed(stream: StreamKind): void {
    this.#add(metrics.selfStreams, { [a.stream]: stream }, -1);
  }

  message(stream: StreamKind): void {
    this.#add(metrics.selfMessages, { [a.stream]: stream });
  }

  decodeError(stream: StreamKind): void {
    this.#add(metrics.selfDecodeErrors, { [a.stream]: stream });
  }

  /** `limit`: the bound's name, from a fixed set in the code, never from input. */
  refused(limit: string, inputs = 1): void {
    this.#add(metrics.selfRefused, { [a.limit]: limit }, inputs);
  }

  /** From a message to its answer, ms. */
  tagDuration(durationMs: number): void {
    this.scope.observe(tagDuration, this.#now(), durationMs / 1000);
  }

  /** An answer changed nothing. `reason`: from a fixed set in the code. */
  failOpen(reason: string): void {
    this.#add(metrics.selfFailOpen, { [a.reason]: reason });
  }

  joinEvent(event: JoinEvent): void {
    this.#add(metrics.selfJoinEvents, { [a.event]: event });
  }

  incomplete(reason: IncompleteReason): void {
    this.#add(metrics.selfIncomplete, { [a.reason]: reason });
  }

  attemptCountMismatch(): void {
    this.#add(metrics.selfAttemptMismatches);
  }

  spansKept(reason: string, spans: number): void {
    this.#add(metrics.selfSpansKept, { [a.reason]: reason }, spans);
  }

  spansDropped(reason: SpanDrop, spans: number): void {
    this.#add(metrics.selfSpansDropped, { [a.reason]: reason }, spans);
  }

  exported(signal: Signal, result: 'ok' | 'failed'): void {
    this.#add(metrics.selfExports, { [a.signal]: signal, [a.result]: result });
  }

  labelOverflow(label: BoundedLabel): void {
    this.#add(metrics.selfLabelOverflow, { [a.label]: label });
  }

  #add(metric: Metric, own?: Labels, amount?: number): void {
    this.scope.add(seriesKind(metric, own), this.#now(), amount);
  }
}
