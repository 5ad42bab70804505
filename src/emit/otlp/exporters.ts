import { Metadata } from '@grpc/grpc-js';
import { OTLPMetricExporter as GrpcMetricExporter } from '@opentelemetry/exporter-metrics-otlp-grpc';
import { OTLPMetricExporter as HttpMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter as GrpcTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { OTLPTraceExporter as HttpTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { AggregationTemporality, type PushMetricExporter } from '@opentelemetry/sdk-metrics';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { OtlpTarget } from './environment.ts';

/** Exports under way at most. One batch follows another; only a shutdown sends several at once. */
const concurrencyLimit = 8;

// Everything is given below, so that nothing is left for the exporters to read from the process's environment, except the
// certificates of an https endpoint (OTEL_EXPORTER_OTLP_CERTIFICATE and the like), which only they can read.
export function createSpanExporter(target: OtlpTarget): SpanExporter {
  return target.protocol === 'grpc'
    ? new GrpcTraceExporter(grpcConfig(target))
    : new HttpTraceExporter(httpConfig(target));
}

export function createMetricExporter(target: OtlpTarget): PushMetricExporter {
  // The producer counts from a start, never from the last collection.
  const temporality = { temporalityPreference: AggregationTemporality.CUMULATIVE };
  return target.protocol === 'grpc'
    ? new GrpcMetricExporter({ ...grpcConfig(target), ...temporality })
    : new HttpMetricExporter({ ...httpConfig(target), ...temporality });
}

// `object`: the type of `compression` is an enum of a package that is not ours to import; its values are these texts.
function grpcConfig({ url, headers, timeoutMs, compression }: OtlpTarget): object {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
  return { url, metadata, timeoutMillis: timeoutMs, concurrencyLimit, compression };
}

function httpConfig({ url, headers, timeoutMs, compression }: OtlpTarget): object {
  return { url, headers, timeoutMillis: timeoutMs, concurrencyLimit, compression };
}
