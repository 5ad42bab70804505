import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { until } from './until.ts';

/** A span as it came over the wire. Ids are hex, times epoch ms; `parentSpanId` is '' for a root. */
export interface ReceivedSpan {
  service: string;
  resource: Record<string, unknown>;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  /** 1 internal, 2 server, 3 client. */
  kind: number;
  startMs: number;
  endMs: number;
  attributes: Record<string, unknown>;
  /** 0 unset, 1 ok, 2 error. */
  status: number;
  /** The SAMPLED flag of its context. */
  sampled: boolean;
}

export interface OtlpReceiver {
  endpoint: string;
  spans: readonly ReceivedSpan[];
  /** Exchange spans (with their attempts) that fit; waits until there are `count`. */
  exchanges(fits: (span: ReceivedSpan) => boolean, count: number): Promise<ReceivedExchange[]>;
  close(): void;
}

export interface ReceivedExchange {
  span: ReceivedSpan;
  /** Its CLIENT children, by start. */
  attempts: ReceivedSpan[];
}

interface WireValue {
  value?: string;
  [kind: string]: unknown;
}
type WireAttributes = { key: string; value: WireValue }[];
interface WireSpan {
  traceId: Buffer;
  spanId: Buffer;
  parentSpanId: Buffer;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: WireAttributes;
  status: { code: number } | null;
  flags: number;
}
interface WireRequest {
  resourceSpans: { resource: { attributes: WireAttributes }; scopeSpans: { spans: WireSpan[] }[] }[];
}

/** A real OTLP/gRPC endpoint that keeps what it gets. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const definition = loadSync(fileURLToPath(new URL('otlp.proto', import.meta.url)), {
    longs: String,
    defaults: true,
    oneofs: true,
  });
  const service = definition['opentelemetry.proto.collector.trace.v1.TraceService'] as grpc.ServiceDefinition;
  const spans: ReceivedSpan[] = [];
  const server = new grpc.Server();
  server.addService(service, {
    Export(call: grpc.ServerUnaryCall<WireRequest, object>, respond: grpc.sendUnaryData<object>) {
      for (const { resource, scopeSpans } of call.request.resourceSpans) {
        const attributes = plain(resource.attributes);
        for (const span of scopeSpans.flatMap((scope) => scope.spans)) spans.push(received(span, attributes));
      }
      respond(null, {});
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const found = (fits: (span: ReceivedSpan) => boolean) =>
    spans
      .filter((span) => 'sidelight.outcome' in span.attributes && fits(span))
      .map((span) => ({ span, attempts: childrenOf(span, spans) }));
  return {
    endpoint: `http://127.0.0.1:${port}`,
    spans,
    async exchanges(fits, count) {
      await until(`${count} exchange spans`, () => found(fits).length >= count);
      return found(fits);
    },
    close: () => server.forceShutdown(),
  };
}

function childrenOf(parent: ReceivedSpan, spans: readonly ReceivedSpan[]): ReceivedSpan[] {
  return spans
    .filter((span) => span.traceId === parent.traceId && span.parentSpanId === parent.spanId)
    .toSorted((a, b) => a.startMs - b.startMs);
}

function received(span: WireSpan, resource: Record<string, unknown>): ReceivedSpan {
  return {
    service: String(resource['service.name']),
    resource,
    traceId: span.traceId.toString('hex'),
    spanId: span.spanId.toString('hex'),
    parentSpanId: span.parentSpanId.toString('hex'),
    name: span.name,
    kind: span.kind,
    startMs: Number(span.startTimeUnixNano) / 1e6,
    endMs: Number(span.endTimeUnixNano) / 1e6,
    attributes: plain(span.attributes),
    status: span.status?.code ?? 0,
    sampled: span.flags % 2 === 1,
  };
}

function plain(attributes: WireAttributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]));
}

function plainValue(value: WireValue): unknown {
  const kind = value.value ?? '';
  const inner = value[kind];
  if (kind === 'intValue') return Number(inner);
  if (kind === 'arrayValue') return (inner as { values: WireValue[] }).values.map(plainValue);
  return inner;
}
