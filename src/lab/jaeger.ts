import { type Backend, startBackend } from './backend.ts';
import { freePort } from './free-port.ts';

export interface Jaeger extends Backend {
  /** Where it takes OTLP over gRPC, as a URL. */
  grpc: string;
  /** Where it takes OTLP over HTTP. */
  http: string;
}

/** A real Jaeger with its storage in memory; up when this resolves. Its `url` is that of its page and its API. */
export async function startJaeger(bin: string): Promise<Jaeger> {
  const [queryGrpc, grpc, http] = [await freePort(), await freePort(), await freePort()].map(
    (port) => `127.0.0.1:${port}`,
  );
  const config = {
    service: {
      extensions: ['jaeger_storage', 'jaeger_query'],
      pipelines: { traces: { receivers: ['otlp'], exporters: ['jaeger_storage_exporter'] } },
      telemetry: { metrics: { level: 'none' } },
    },
    extensions: {
      jaeger_query: { storage: { traces: 'mem' }, grpc: { endpoint: queryGrpc } },
      jaeger_storage: { backends: { mem: { memory: { max_traces: 10_000 } } } },
    },
    receivers: { otlp: { protocols: { grpc: { endpoint: grpc }, http: { endpoint: http } } } },
    exporters: { jaeger_storage_exporter: { trace_storage: 'mem' } },
  };
  const backend = await startBackend({
    name: 'Jaeger',
    bin,
    // JSON is YAML.
    files: { 'jaeger.yaml': JSON.stringify(config) },
    args: (address) => ['--config=jaeger.yaml', `--set=extensions.jaeger_query.http.endpoint=${address}`],
    readyPath: '/api/services',
  });
  return { ...backend, grpc: `http://${grpc}`, http: `http://${http}` };
}
