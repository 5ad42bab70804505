import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { type handleUnaryCall, Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

interface Attribute {
  key: string;
  value: Record<string, string | number | boolean>;
}
/** A span as it came over the wire. Ids are hex, times epoch ms; `parentSpanId` is '' for a root. */
export interface ReceivedSpan {
  service: string;
  resource: Record<string, unknown>;
  name: string;
  /** 1 internal, 2 server, 3 client. */
  kind: number;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  startNanos: string;
  endNanos: string;
  startMs: number;
  endMs: number;
  attributes: Record<string, unknown>;
  /** 0 unset, 1 ok, 2 error. */
  status: number;
  /** The SAMPLED flag of its context. */
  sampled: boolean;
  links: { traceId: string; spanId: string }[];
}
export interface ReceivedPoint {
  attributes: Record<string, unknown>;
  /** Of a histogram: its count. */
  value: number;
}
export interface ReceivedMetric {
  name: string;
  unit: string;
  kind: 'counter' | 'gauge' | 'histogram';
  cumulative: boolean;
  points: ReceivedPoint[];
}

/** What came, over either protocol. */
export interface Received {
  spans: ReceivedSpan[];
  /** Of each export of metrics: the resource, and the metrics. */
  metrics: { resource: Record<string, unknown>; metrics: ReceivedMetric[] }[];
  /** Path, or full method name, and headers of each request. */
  requests: { path: string; headers: Record<string, unknown> }[];
}

export interface Receiver {
  url: string;
  received: Received;
  close(): Promise<void>;
}

type Point = { attributes: Attribute[]; asDouble?: number; asInt?: string; count?: string };
interface TraceRequest {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: {
        traceId: Buffer;
        spanId: Buffer;
        parentSpanId: Buffer;
        name: string;
        kind: number;
        startTimeUnixNano: string;
        endTimeUnixNano: string;
        attributes: Attribute[];
        links: { traceId: Buffer; spanId: Buffer }[];
        status: { code: number } | null;
        flags: number;
      }[];
    }[];
  }[];
}
interface MetricsRequest {
  resourceMetrics: {
    resource: { attributes: Attribute[] };
    scopeMetrics: {
      metrics: {
        name: string;
        unit: string;
        gauge?: { dataPoints: Point[] };
        sum?: { dataPoints: Point[]; aggregationTemporality: number; isMonotonic: boolean };
        histogram?: { dataPoints: Point[]; aggregationTemporality: number };
      }[];
    }[];
  }[];
}

const proto = loadSync(fileURLToPath(new URL('otlp-sink.proto', import.meta.url)), {
  longs: String,
  defaults: true,
  oneofs: true,
});
const services = {
  traces: proto['opentelemetry.proto.collector.all.v1.Traces'] as ServiceDefinition,
  metrics: proto['opentelemetry.proto.collector.all.v1.Metrics'] as ServiceDefinition,
};

/** A receiver of OTLP over HTTP on a free port of loopback. `status`: what it answers. */
export async function startHttpReceiver(status = 200): Promise<Receiver> {
  const received: Received = { spans: [], metrics: [], requests: [] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      received.requests.push({ path, headers: request.headers });
      take(received, path.endsWith('traces') ? 'traces' : 'metrics', unpacked(request.headers, Buffer.concat(chunks)));
      response.writeHead(status, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The same over gRPC. */
export async function startGrpcReceiver(): Promise<Receiver> {
  const received: Received = { spans: [], metrics: [], requests: [] };
  const server = new Server();
  const add = (signal: 'traces' | 'metrics', path: string): void => {
    const method = { ...services[signal]['Export'], path } as ServiceDefinition[string];
    const raw = { ...method, requestDeserialize: (bytes: Buffer) => bytes };
    const Export: handleUnaryCall<Buffer, object> = (call, done) => {
      received.requests.push({ path, headers: call.metadata.getMap() });
      take(received, signal, call.request);
      done(null, {});
    };
    server.addService({ Export: raw }, { Export });
  };
  add('traces', '/opentelemetry.proto.collector.trace.v1.TraceService/Export');
  add('metrics', '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export');
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    close() {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}

function unpacked(headers: IncomingHttpHeaders, body: Buffer): Buffer {
  return headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
}

function take(received: Received, signal: 'traces' | 'metrics', bytes: Buffer): void {
  const decode = services[signal]['Export']?.requestDeserialize as (bytes: Buffer) => unknown;
  if (signal === 'traces') received.spans.push(...spansOf(decode(bytes) as TraceRequest));
  else received.metrics.push(...metricsOf(decode(bytes) as MetricsRequest));
}

function spansOf({ resourceSpans }: TraceRequest): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const own = plain(resource.attributes);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        service: String(own['service.name']),
        resource: own,
        name: span.name,
        kind: span.kind,
        traceId: span.traceId.toString('hex'),
        spanId: span.spanId.toString('hex'),
        parentSpanId: span.parentSpanId.toString('hex'),
        startNanos: span.startTimeUnixNano,
        endNanos: span.endTimeUnixNano,
        startMs: Number(span.startTimeUnixNano) / 1e6,
        endMs: Number(span.endTimeUnixNano) / 1e6,
        attributes: plain(span.attributes),
        status: span.status?.code ?? 0,
        sampled: (span.flags & 1) === 1,
        links: span.links.map((link) => ({
          traceId: link.traceId.toString('hex'),
          spanId: link.spanId.toString('hex'),
        })),
      })),
    );
  });
}

function metricsOf({ resourceMetrics }: MetricsRequest): Received['metrics'] {
  return resourceMetrics.map(({ resource, scopeMetrics }) => ({
    resource: plain(resource.attributes),
    metrics: scopeMetrics.flatMap(({ metrics }) =>
      metrics.map(({ name, unit, gauge, sum, histogram }): ReceivedMetric => {
        const data = gauge ?? sum ?? histogram;
        const temporality = (sum ?? histogram)?.aggregationTemporality;
        const kind = histogram ? 'histogram' : sum?.isMonotonic === true ? 'counter' : 'gauge';
        return { name, unit, kind, cumulative: temporality === 2, points: (data?.dataPoints ?? []).map(pointOf) };
      }),
    ),
  }));
}

function pointOf({ attributes, asDouble, asInt, count }: Point): ReceivedPoint {
  return { attributes: plain(attributes), value: Number(asInt ?? asDouble ?? count) };
}

function plain(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]));
}

/** 64-bit numbers come as text. */
function plainValue(value: Attribute['value']): unknown {
  const kind = String(value['value']);
  return kind === 'intValue' ? Number(value[kind]) : value[kind];
}
