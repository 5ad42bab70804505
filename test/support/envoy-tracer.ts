import type { SceneOptions } from './tagging-scene.ts';

/** Envoy's own OpenTelemetry tracer, on for every request, its spans sent to the scene's receiver at once. */
export const envoyTracer = {
  runtime: { 'tracing.opentelemetry.flush_interval_ms': 50, 'tracing.opentelemetry.min_flush_spans': 1 },
  adapt: (hcm) => {
    hcm['tracing'] = {
      random_sampling: { value: 100 },
      provider: {
        name: 'envoy.tracers.opentelemetry',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig',
          service_name: 'envoy-itself',
          grpc_service: { envoy_grpc: { cluster_name: 'otlp' } },
        },
      },
    };
  },
} satisfies Partial<SceneOptions>;
