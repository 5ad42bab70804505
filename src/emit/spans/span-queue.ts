import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace';

export interface QueueLimits {
  /** Spans waiting at most; what is over it is dropped and counted. */
  maxQueueSize: number;
  maxExportBatchSize: number;
  scheduledDelayMs: number;
  exportTimeoutMs: number;
}

export interface QueueEvents {
  /** The queue was full. */
  dropped: (spans: number) => void;
  exported: (spans: number, result: ExportResult) => void;
}

/** The SDK's batches behind a count of what waits, because the SDK drops in silence. A dead receiver blocks nothing. */
export function createSpanQueue(exporter: SpanExporter, limits: QueueLimits, events: QueueEvents): SpanProcessor {
  let waiting = 0;
  const counting: SpanExporter = {
    export(spans, done) {
      waiting -= spans.length;
      exporter.export(spans, (result) => {
        events.exported(spans.length, result);
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counting,
    maxQueueSize: limits.maxQueueSize,
    maxExportBatchSize: Math.min(limits.maxExportBatchSize, limits.maxQueueSize),
    scheduledDelayMillis: limits.scheduledDelayMs,
    exportTimeoutMillis: limits.exportTimeoutMs,
  });
  let closed = false;
  return {
    onStart: () => undefined,
    onEnd(span: ReadableSpan) {
      if (closed || waiting >= limits.maxQueueSize) {
        events.dropped(1);
        return;
      }
      waiting += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown() {
      closed = true;
      return batches.shutdown();
    },
  };
}

export function succeeded({ code }: ExportResult): boolean {
  return code === ExportResultCode.SUCCESS;
}
