import type { Cleanup } from '../../src/lab/cleanup.ts';
import { startJaeger as startJaegerProcess } from '../../src/lab/jaeger.ts';
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

/** A real Jaeger with its storage in memory, as a test asks it; up when this resolves. */
export async function startJaeger(cleanup: Cleanup, bin: string): Promise<Jaeger> {
  const { url, grpc, http } = cleanup.use(await startJaegerProcess(bin));
  const search = async (text: string) => {
    const answer = await fetch(`${url}/api/traces?${text}`);
    return ((await answer.json()) as { data: JaegerTrace[] | null }).data ?? [];
  };
  return {
    grpc,
    http,
    url,
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
        const answer = (await (await fetch(`${url}/api/traces/${traceId}`)).json()) as {
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
