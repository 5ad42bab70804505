import {
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import type { SelfMetrics } from '../metrics/self-metrics.ts';
import { succeeded } from '../spans/span-queue.ts';
import type { ExportFailures } from './export-failures.ts';

export interface MetricPushOptions {
  exporter: PushMetricExporter;
  producer: MetricProducer;
  intervalMs: number;
  timeoutMs: number;
  self: SelfMetrics;
  failures: ExportFailures;
}

/** Points in one export: receivers refuse gRPC messages over 4 MiB, and encoding one must not take long. */
const maxExportBatchSize = 5000;

/** Pushes what the scrape would show, each interval. While one export is under way, the next is skipped. */
export function createMetricPush(options: MetricPushOptions): PeriodicExportingMetricReader {
  const { exporter, producer, intervalMs, timeoutMs, self, failures } = options;
  const counting: PushMetricExporter = {
    export(metrics, done) {
      exporter.export(metrics, (result) => {
        self.exported('metrics', succeeded(result) ? 'ok' : 'failed');
        if (!succeeded(result)) failures.failed('metrics', result.error);
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
  return new PeriodicExportingMetricReader({
    exporter: counting,
    metricProducers: [producer],
    maxExportBatchSize,
    exportIntervalMillis: intervalMs,
    // The SDK refuses a timeout that is longer than the interval.
    exportTimeoutMillis: Math.min(timeoutMs, intervalMs),
  });
}
