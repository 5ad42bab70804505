import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { until } from './until.ts';

/** A span as `/api/traces` tells it. */
export interface JaegerSpan {
  traceID: string;
  spanID: string;
  operationName: string;
  /** Its key among the trace's processes. */
  processID: string;
  references: { refType: string; traceID: string; spanID: string }[];
  /** Epoch µs. */
  startTime: number;
  /** µs. */
  duration: number;
  tags: { key: string; value: unknown }[];
  processID: string;
  /** What Jaeger itself has to say of it. */
  warnings: string[] | null;
}

export interface JaegerTrace {
  traceID: string;
  spans: JaegerSpan[];
  /** By the id that a span has as its `processID`. */
  processes: Record<string, { serviceName: string }>;
}

export interface Jaeger {
  /** Where it takes OTLP over gRPC, and over HTTP. */
  grpc: string;
  http: string;
  /** Where its page and its API are. */
  url: string;
  /** What the API answers now to this query, as it stands in a URL. */
  search(query: string): Promise<JaegerTrace[]>;
  /** The traces of a service in which one span has all these tags, started from `sinceMs` on; waits until there is one. */
  find(service: string, tags: Record<string, string>, sinceMs: number): Promise<JaegerTrace[]>;
  /** One trace by its id; waits until it has so many spans. */
  whole(traceId: string, spans: number): Promise<JaegerTrace>;
}

/** A real Jaeger with its storage in memory; up when this resolves. */
export async function startJaeger(cleanup: Cleanup, bin: string): Promise<Jaeger> {
  // A port that was free may be another's by the time Jaeger listens on it: it then ends at once, and tries others.
  for (let tries = 3; ; tries -= 1) {
    const jaeger = await tryJaeger(cleanup, bin);
    if (jaeger !== undefined) return jaeger;
    if (tries === 1) throw new Error('Jaeger ended at once, three times');
  }
}

/** `undefined`: it ended before it was up. */
async function tryJaeger(cleanup: Cleanup, bin: string): Promise<Jaeger | undefined> {
  const dir = cleanup.use(tempDir());
  const [query, queryGrpc, grpc, http] = [await freePort(), await freePort(), await freePort(), await freePort()].map(
    (port) => `127.0.0.1:${port}`,
  );
  const config = {
    service: {
      extensions: ['jaeger_storage', 'jaeger_query'],
      pipelines: { traces: { receivers: ['otlp'], exporters: ['jaeger_storage_exporter'] } },
      telemetry: { metrics: { level: 'none' } },
    },
    extensions: {
      jaeger_query: { storage: { traces: 'mem' }, http: { endpoint: query }, grpc: { endpoint: queryGrpc } },
      jaeger_storage: { backends: { mem: { memory: { max_traces: 1000 } } } },
    },
    receivers: { otlp: { protocols: { grpc: { endpoint: grpc }, http: { endpoint: http } } } },
    exporters: { jaeger_storage_exporter: { trace_storage: 'mem' } },
  };
  const file = path.join(dir.path, 'jaeger.yaml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config));
  const child = spawn(bin, ['--config', file], { stdio: 'ignore' });
  dieWithUs(child);
  cleanup.defer(() => child.kill('SIGKILL'));
  const isUp = async () => (await fetch(`http://${query}/api/services`).catch(() => undefined))?.ok === true;
  await until('Jaeger', async () => child.exitCode !== null || (await isUp()));
  if (child.exitCode !== null) return undefined;
  const search = async (text: string) => {
    const answer = await fetch(`http://${query}/api/traces?${text}`);
    return ((await answer.json()) as { data: JaegerTrace[] | null }).data ?? [];
  };
  return {
    grpc: `http://${grpc}`,
    http: `http://${http}`,
    url: `http://${query}`,
    search,
    async find(service, tags, sinceMs) {
      const asked = new URLSearchParams({
        service,
        tags: JSON.stringify(tags),
        start: String(Math.floor(sinceMs) * 1000),
        end: String((Math.floor(sinceMs) + 3_600_000) * 1000),
      }).toString();
      let found: JaegerTrace[] = [];
      await until(`a trace of ${service} with ${JSON.stringify(tags)}`, async () => {
        found = await search(asked);
        return found.length > 0;
      });
      return found;
    },
    async whole(traceId, spans) {
      let trace: JaegerTrace | undefined;
      await until(`${spans} spans of trace ${traceId}`, async () => {
        const answer = (await (await fetch(`http://${query}/api/traces/${traceId}`)).json()) as {
          data: JaegerTrace[] | null;
        };
        trace = answer.data?.at(0);
        return (trace?.spans.length ?? 0) >= spans;
      });
      return trace as JaegerTrace;
    },
  };
}

/** The value of a span's tag; `undefined` where it has none. */
export function tagOf(span: JaegerSpan | undefined, key: string): unknown {
  return span?.tags.find((tag) => tag.key === key)?.value;
}

/** The spans directly under one, by start. */
export function childrenOf({ spans }: JaegerTrace, parent: JaegerSpan | undefined): JaegerSpan[] {
  return spans
    .filter(({ references }) => references.some(({ spanID }) => spanID === parent?.spanID))
    .toSorted((a, b) => a.startTime - b.startTime);
}
