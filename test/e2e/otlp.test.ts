import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Emit } from '../../src/emit/create-emit.ts';
import type { ExportFailure } from '../../src/emit/otlp/export-failures.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { clearedPin, leftAtMs, pinLife, scraped, testEmit } from '../support/emit.ts';
import { reporter } from '../support/entries.ts';
import { judged, masked, pin } from '../support/judged.ts';
import { type Received, type Receiver, startGrpcReceiver, startHttpReceiver } from '../support/otlp-sink.ts';
import { total } from '../support/prometheus-text.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

async function receiver(start: () => Promise<Receiver>): Promise<Receiver> {
  return cleanup.use(await start());
}

function emitTo(env: Record<string, string>, overrides: Parameters<typeof testEmit>[0] = {}): Emit {
  const emit = testEmit({ env, ...overrides });
  cleanup.defer(() => emit.shutdown(500));
  return emit;
}

/** The last export of metrics, put together: one export may come in several batches. */
function lastPoints({ metrics }: Received, name: string): { attributes: Record<string, unknown>; value: number }[] {
  return metrics.flatMap((one) => one.metrics.filter((metric) => metric.name === name).flatMap(({ points }) => points));
}

describe.each([
  ['http/protobuf', startHttpReceiver],
  ['grpc', startGrpcReceiver],
])('over OTLP %s', (protocol, start) => {
  it('a masked exchange arrives as its trace, under its workload, with exact times and the failed attempt in it', async () => {
    const { url, received } = await receiver(start);
    const emit = emitTo({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_PROTOCOL: protocol });
    emit.exchange(masked());
    await emit.shutdown(5000);
    const top = received.spans.find(({ attributes }) => 'sidelight.outcome' in attributes);
    expect(top).toMatchObject({
      name: 'GET app',
      service: 'shop',
      startNanos: '1700000000000000000',
      endNanos: '1700000001025000000',
      attributes: { 'sidelight.outcome': 'masked', 'http.response.status_code': 200 },
    });
    const tries = received.spans.filter(({ parentSpanId }) => parentSpanId === top?.spanId);
    expect(tries.map(({ attributes }) => [attributes['sidelight.attempt'], attributes['sidelight.cause']])).toEqual([
      [1, 'connect_failure'],
      [2, undefined],
    ]);
  });

  it('a stale pin arrives as a trace of its own, and the exchange over it with a link to it', async () => {
    const { url, received } = await receiver(start);
    const emit = emitTo({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_PROTOCOL: protocol });
    emit.pinEvent('stale', pinLife());
    emit.exchange(judged({ verdict: { pin: pin({ pin: 'stale', leftAtMs }) } }));
    emit.pinEvent('cleared', clearedPin());
    await emit.shutdown(5000);
    const named = (name: string) => received.spans.find((span) => span.name === name);
    const [stale, cleared] = ['stale pin', 'stale pin cleared'].map(named);
    const exchange = received.spans.find(({ attributes }) => 'sidelight.outcome' in attributes);
    expect(stale).toMatchObject({ service: 'shop', kind: 1, parentSpanId: '', sampled: true, links: [] });
    expect(cleared).toMatchObject({ traceId: stale?.traceId, parentSpanId: stale?.spanId });
    expect(exchange?.links).toEqual([{ traceId: stale?.traceId, spanId: stale?.spanId }]);
    expect(exchange?.traceId).not.toBe(stale?.traceId);
  });

  it('metrics arrive with the values of the scrape, under names that become the same in Prometheus', async () => {
    const { url, received } = await receiver(start);
    const emit = emitTo(
      { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
      {
        sources: {
          eventLoopLagMs: () => 3,
          pins: () => [
            {
              reporter,
              cluster: 'app',
              endpoint: '127.0.0.12:8080',
              layer: 'http',
              pin: 'stale',
              ageMs: 7000,
              expected: true,
            },
          ],
          unused: () => new Map([['app', 1]]),
          coverage: () => [{ profile: 'observe', reporters: 1, silent: 1, lastEntryMs: undefined }],
        },
      },
    );
    emit.exchange(masked());
    emit.exchange(judged());
    emit.pinUse({ reporter, requests: 1, cluster: 'app', endpoint: '127.0.0.12:8080', bytes: 42 });
    emit.pinEvent('cleared', clearedPin());
    const families = scraped(emit);
    await emit.shutdown(5000);
    const { resource, metrics } = received.metrics[0] ?? { resource: {}, metrics: [] };
    expect(resource).toMatchObject({ 'service.name': 'sidelight', 'service.instance.id': 'replica-1' });
    expect(new Set(metrics.map((metric) => prometheusName(metric)))).toEqual(
      new Set([...families.keys()].filter((name) => name !== 'target_info')),
    );
    for (const metric of metrics) {
      const name = prometheusName(metric);
      const family = families.get(name);
      expect([name, metric.kind]).toEqual([name, family?.type]);
      expect(metric.cumulative).toBe(metric.kind !== 'gauge');
      const values = (family?.samples ?? [])
        .filter((sample) => sample.name === (metric.kind === 'histogram' ? `${name}_count` : name))
        .map(({ labels, value }) => ({ labels, value }));
      const points = metric.points.map(({ attributes, value }) => ({
        labels: Object.fromEntries(Object.entries(attributes).map(([key, text]) => [key.replaceAll('.', '_'), text])),
        value,
      }));
      expect(points).toEqual(values);
    }
  });
});

describe('the environment', () => {
  it('names headers, compression and the service, and they arrive', async () => {
    const { url, received } = await receiver(startHttpReceiver);
    const emit = emitTo({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=shop,x-two=a%20b',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-two=c',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_SERVICE_NAME: 'my-sidelight',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=lab,service.name=not-this',
    });
    emit.exchange(judged());
    await emit.shutdown(5000);
    const headersOf = (path: string): Record<string, unknown> | undefined =>
      received.requests.find((request) => request.path === path)?.headers;
    expect(headersOf('/v1/traces')).toMatchObject({ 'x-tenant': 'shop', 'x-two': 'c', 'content-encoding': 'gzip' });
    expect(headersOf('/v1/metrics')).toMatchObject({ 'x-tenant': 'shop', 'x-two': 'a b', 'content-encoding': 'gzip' });
    expect(received.metrics[0]?.resource).toMatchObject({
      'service.name': 'my-sidelight',
      'deployment.environment.name': 'lab',
    });
    expect(received.spans[0]?.service).toBe('shop');
  });

  it('names headers for gRPC', async () => {
    const { url, received } = await receiver(startGrpcReceiver);
    const emit = emitTo({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=shop',
    });
    emit.exchange(judged());
    await emit.shutdown(5000);
    expect(received.requests.map(({ headers }) => headers['x-tenant'])).toEqual(['shop', 'shop']);
  });

  it('sets how often spans and metrics are sent', async () => {
    const { url, received } = await receiver(startHttpReceiver);
    const emit = emitTo({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_METRIC_EXPORT_INTERVAL: '50',
    });
    emit.exchange(judged());
    await vi.waitFor(() => expect(received.spans).toHaveLength(2), 5000);
    await vi.waitFor(() => expect(lastPoints(received, 'sidelight.attempts').length).toBeGreaterThan(1), 5000);
  });

  it('bounds what waits; what is over it is dropped and counted', async () => {
    const { url, received } = await receiver(startHttpReceiver);
    const emit = emitTo({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_BSP_MAX_QUEUE_SIZE: '10',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
    });
    for (let i = 0; i < 20; i += 1) emit.exchange(judged());
    expect(total(scraped(emit), 'sidelight_self_spans_kept_total', { sidelight_reason: 'sampled' })).toBe(40);
    const dropped = total(scraped(emit), 'sidelight_self_spans_dropped_total', { sidelight_reason: 'queue_full' });
    await emit.shutdown(5000);
    expect(dropped).toBeGreaterThan(0);
    expect(received.spans).toHaveLength(40 - dropped);
    expect(received.requests.filter(({ path }) => path === '/v1/traces').length).toBeGreaterThan(1);
  });

  it.each([
    ['OTEL_SDK_DISABLED', 'true', []],
    ['OTEL_TRACES_EXPORTER', 'none', ['/v1/metrics']],
    ['OTEL_METRICS_EXPORTER', 'none', ['/v1/traces']],
  ])('can turn sending off: %s=%s', async (name, value, paths) => {
    const { url, received } = await receiver(startHttpReceiver);
    const emit = emitTo({ OTEL_EXPORTER_OTLP_ENDPOINT: url, [name]: value });
    emit.exchange(judged());
    await emit.shutdown(5000);
    expect(received.requests.map(({ path }) => path)).toEqual(paths);
    expect(total(scraped(emit), 'sidelight_requests_total', { sidelight_outcome: 'ok' })).toBe(1);
  });
});

describe('a receiver', () => {
  it('that refuses costs what was sent to it, which is counted and told once', async () => {
    const { url } = await receiver(() => startHttpReceiver(400));
    const failures: ExportFailure[] = [];
    const emit = emitTo({ OTEL_EXPORTER_OTLP_ENDPOINT: url }, { onExportFailure: (failure) => failures.push(failure) });
    for (let i = 0; i < 1000; i += 1) emit.exchange(judged());
    await emit.shutdown(5000);
    const lost = { sidelight_reason: 'export_failed' };
    // The end does not wait for what else is under way once one export was refused.
    await vi.waitFor(() => expect(total(scraped(emit), 'sidelight_self_spans_dropped_total', lost)).toBe(2000), 5000);
    const families = scraped(emit);
    expect(failures.map(({ signal }) => signal).toSorted()).toEqual(['metrics', 'traces']);
    expect(total(families, 'sidelight_self_exports_total', { sidelight_result: 'failed' })).toBeGreaterThan(1);
    expect(total(families, 'sidelight_self_exports_total', { sidelight_result: 'ok' })).toBe(0);
  });

  it.each(['http/protobuf', 'grpc'])('that is not there holds up nothing, over %s', async (protocol) => {
    const failures: ExportFailure[] = [];
    const emit = emitTo(
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_TIMEOUT: '300',
      },
      { onExportFailure: (failure) => failures.push(failure) },
    );
    for (let i = 0; i < 5000; i += 1) emit.exchange(judged());
    expect(total(scraped(emit), 'sidelight_requests_total', { sidelight_outcome: 'ok' })).toBe(5000);
    await emit.shutdown(5000);
    await vi.waitFor(() => expect(failures.map(({ signal }) => signal)).toContain('traces'), 5000);
  });

  it('that never answers cannot delay the end beyond the time given', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => sockets.add(socket));
    const port = await new Promise<number>((resolve) => {
      silent.listen(0, '127.0.0.1', () => resolve((silent.address() as { port: number }).port));
    });
    cleanup.defer(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const emit = testEmit({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } });
    emit.exchange(judged());
    const order: string[] = [];
    const ended = emit.shutdown(200).then(() => order.push('shutdown'));
    const later = new Promise<void>((resolve) => setTimeout(resolve, 5000)).then(() => order.push('5 s'));
    await Promise.race([ended, later]);
    expect(order).toEqual(['shutdown']);
  });
});
