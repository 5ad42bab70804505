import type { SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { SelfMetrics } from '../metrics/self-metrics.ts';
import { ChosenIds } from '../spans/ids.ts';
import { PinSpans } from '../spans/pin-spans.ts';
import { createSpanQueue, type QueueLimits, succeeded } from '../spans/span-queue.ts';
import { type Sampling, SpanWriter } from '../spans/span-writer.ts';
import { WorkloadTracers, type WorkloadTracersOptions } from '../spans/workload-tracers.ts';
import type { ExportFailures } from './export-failures.ts';

export interface TracePipelineOptions extends Omit<WorkloadTracersOptions, 'ids' | 'processor'> {
  exporter: SpanExporter;
  queue: QueueLimits;
  sampling: Sampling;
  /** Stale pins whose span exchanges can link to. */
  maxPins: number;
  self: SelfMetrics;
  failures: ExportFailures;
}

export interface TracePipeline {
  writer: SpanWriter;
  pins: PinSpans;
  /** To be shut down once; it takes the exporter with it. */
  processor: SpanProcessor;
}

/** Judged exchanges in, spans to the exporter out; all that is lost on the way is counted. */
export function createTracePipeline(options: TracePipelineOptions): TracePipeline {
  const { exporter, queue, sampling, maxPins, self, failures } = options;
  const processor = createSpanQueue(exporter, queue, {
    dropped: (spans) => self.spansDropped('queue_full', spans),
    exported(spans, result) {
      self.exported('traces', succeeded(result) ? 'ok' : 'failed');
      if (succeeded(result)) return;
      self.spansDropped('export_failed', spans);
      failures.failed('traces', result.error);
    },
  });
  const ids = new ChosenIds();
  const tracers = new WorkloadTracers({ ...options, ids, processor });
  const { kept, isPinExpected } = sampling;
  const pins = new PinSpans({ tracers, ids, kept, isPinExpected, maxPins, self });
  return { writer: new SpanWriter({ tracers, ids, sampling, pins, self }), pins, processor };
}
