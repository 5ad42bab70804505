import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import { spanAttributes } from '../../src/emit/attributes.ts';
import { SelfMetrics } from '../../src/emit/metrics/self-metrics.ts';
import { ChosenIds } from '../../src/emit/spans/ids.ts';
import { type Sampling, SpanWriter } from '../../src/emit/spans/span-writer.ts';
import { WorkloadTracers } from '../../src/emit/spans/workload-tracers.ts';
import type { JudgedExchange } from '../../src/model/verdict.ts';
import { reporter } from '../support/entries.ts';
import { attempt, chain, failedBy, ip, judged, local, masked, pin, startMs } from '../support/judged.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const callerSpan = '00f067aa0ba902b7';
const now = startMs + 5000;

function writerWith(sampling: Partial<Sampling> = {}): {
  writer: SpanWriter;
  spans: () => ReadableSpan[];
  tracers: WorkloadTracers;
} {
  const exporter = new InMemorySpanExporter();
  const ids = new ChosenIds();
  const tracers = new WorkloadTracers({
    workloads: 2,
    instanceId: 'replica-1',
    version: '0.1.0',
    resourceAttributes: { 'deployment.environment.name': 'test', 'service.name': 'not-this', 'service.version': '9' },
    ids,
    processor: new SimpleSpanProcessor({ exporter }),
  });
  const writer = new SpanWriter({
    tracers,
    ids,
    sampling: {
      ratio: 1,
      kept: { perSecond: 1, burst: 2, buckets: 10 },
      slowMs: () => 1000,
      isPinExpected: () => false,
      ...sampling,
    },
    pins: { spanOf: () => undefined },
    self: new SelfMetrics(() => now),
  });
  return { writer, spans: () => exporter.getFinishedSpans(), tracers };
}

/** The exchange's span and its attempts', by start. */
function written(one: JudgedExchange, sampling: Partial<Sampling> = {}): { top: ReadableSpan; tries: ReadableSpan[] } {
  const { writer, spans } = writerWith(sampling);
  writer.exchange(one, now);
  const all = spans();
  const top = all.find(({ attributes }) => 'sidelight.outcome' in attributes);
  if (top === undefined) throw new Error('no span');
  return { top, tries: all.filter((span) => span !== top) };
}

describe('the spans of a masked exchange', () => {
  const { top, tries } = written(masked());

  it('are the exchange and under it each attempt, with their own times to the microsecond', () => {
    expect([top.name, ...tries.map(({ name }) => name)]).toEqual(['GET app', 'GET app', 'GET app']);
    expect(tries.map(({ attributes }) => attributes['sidelight.attempt'])).toEqual([1, 2]);
    expect(tries.map((span) => span.parentSpanContext?.spanId)).toEqual([
      top.spanContext().spanId,
      top.spanContext().spanId,
    ]);
    expect([top.startTime, top.endTime]).toEqual([
      [1_700_000_000, 0],
      [1_700_000_001, 25_000_000],
    ]);
    expect(tries.map(({ startTime, endTime }) => [startTime, endTime])).toEqual([
      [
        [1_700_000_000, 0],
        [1_700_000_001, 0],
      ],
      [
        [1_700_000_001, 5_000_000],
        [1_700_000_001, 25_000_000],
      ],
    ]);
    expect([top.kind, ...tries.map(({ kind }) => kind)]).toEqual([SpanKind.SERVER, SpanKind.CLIENT, SpanKind.CLIENT]);
  });

  it('say of a failed attempt whether the request was sent at all', () => {
    expect(tries.map(({ attributes }) => attributes['sidelight.request.sent'])).toEqual([false, undefined]);
    const broken = attempt({ code: undefined, flags: ['UC'] });
    const behindTunnel = { ...broken, peer: { ...ip('10.0.0.7:8080'), kind: 'internal' as const } };
    const { tries: sent } = written(
      judged({
        exchange: { attempts: [broken, behindTunnel], delivered: undefined },
        verdict: {
          outcome: 'exhausted',
          attempts: [failedBy('connection_termination'), failedBy('connection_termination')],
        },
      }),
    );
    expect(sent.map(({ attributes }) => attributes['sidelight.request.sent'])).toEqual([true, undefined]);
  });

  it('say how the request multiplied on its way, where that is known', () => {
    const { top: outer } = written(masked({ chain }));
    expect(outer.attributes).toMatchObject({
      'sidelight.chain.amplification': 7.67,
      'sidelight.chain.factors': '3 × 2.67',
      'sidelight.chain.layers': 'shop (sidecar_outbound) × way (waypoint)',
      'sidelight.chain.origin': 'way (waypoint)',
    });
    expect(Object.keys(top.attributes).filter((name) => name.startsWith('sidelight.chain.'))).toEqual([]);
  });

  it('make no error of the exchange, but of the failed attempt', () => {
    expect(top.status).toEqual({ code: SpanStatusCode.UNSET });
    expect(tries[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'connect_failure' });
    expect(tries[1]?.status).toEqual({ code: SpanStatusCode.UNSET });
  });

  it('say what happened to the exchange', () => {
    expect(top.attributes).toEqual({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'network.protocol.name': 'http',
      'network.protocol.version': '1.1',
      'server.address': 'shop.test',
      'server.port': 8080,
      'sidelight.attempts': 2,
      'sidelight.cause': 'connect_failure',
      'sidelight.cluster': 'app',
      'sidelight.code_details': 'via_upstream',
      'sidelight.connection.age_ms': 5000,
      'sidelight.connection.id': '7',
      'sidelight.endpoint': '127.0.0.11:8080',
      'sidelight.masked.latency_ms': 1005,
      'sidelight.outcome': 'masked',
      'sidelight.pin': 'current',
      'sidelight.profile': 'observe',
      'sidelight.reporter.envoy_version': '1.40.0',
      'sidelight.reporter.kind': 'envoy',
      'sidelight.reporter.node_id': 'shop-1.default',
      'sidelight.reporter.pod': 'shop-1',
      'sidelight.request_id': 'r1',
      'sidelight.retried': true,
      'url.path': '/cart',
      'url.scheme': 'http',
    });
  });

  it('say what happened to each attempt', () => {
    expect(tries[0]?.attributes).toEqual({
      'error.type': 'connect_failure',
      'http.request.method': 'GET',
      'network.peer.address': '127.0.0.12',
      'network.peer.port': 8080,
      'server.address': 'shop.test',
      'server.port': 8080,
      'sidelight.attempt': 1,
      'sidelight.cause': 'connect_failure',
      'sidelight.cluster': 'app',
      'sidelight.endpoint': '127.0.0.12:8080',
      'sidelight.flags': 'UF',
      'sidelight.request.sent': false,
      'sidelight.result': 'failed',
      'sidelight.transport_failure': 'connection_refused',
      'url.full': 'http://shop.test:8080/cart',
      'url.path': '/cart',
      'url.scheme': 'http',
    });
    expect(tries[1]?.attributes).toMatchObject({
      'http.request.resend_count': 1,
      'http.response.status_code': 200,
      'sidelight.attempt': 2,
      'sidelight.connection.id': '7',
      'sidelight.result': 'ok',
    });
  });

  it('belong to the workload that reported', () => {
    expect(top.resource.attributes).toMatchObject({
      'deployment.environment.name': 'test',
      'service.name': 'shop',
      'service.namespace': 'default',
      'service.instance.id': 'replica-1',
    });
    expect(top.resource.attributes['service.version']).toBeUndefined();
    expect(top.instrumentationScope).toMatchObject({ name: 'sidelight', version: '0.1.0' });
  });

  it('have only attributes of the table, each where the table has it', () => {
    const table: Record<string, { on: string }> = spanAttributes;
    for (const name of Object.keys(top.attributes)) expect(['exchange', 'both']).toContain(table[name]?.on);
    for (const name of tries.flatMap(({ attributes }) => Object.keys(attributes)))
      expect(['attempt', 'both']).toContain(table[name]?.on);
  });
});

describe('the span of another exchange', () => {
  it('is an error with the status as its type, if it failed by status', () => {
    const one = judged({
      exchange: { code: 503, attempts: [attempt({ code: 503 })] },
      verdict: { outcome: 'failed', cause: 'status_5xx', attempts: [failedBy('status_5xx')], retryDenied: 'none' },
    });
    const { top, tries } = written(one);
    // What the status code says is not said twice.
    expect([top.status, tries[0]?.status]).toEqual([{ code: SpanStatusCode.ERROR }, { code: SpanStatusCode.ERROR }]);
    expect(top.attributes).toMatchObject({ 'error.type': '503', 'sidelight.retry.denied': 'none' });
    expect(tries[0]?.attributes['error.type']).toBe('503');
  });

  it('is named after the route, and its attempts after the cluster that each went to', () => {
    const attempts = [attempt(), attempt({ number: 2, cluster: 'app-b' })];
    const { top, tries } = written(judged({ exchange: { route: 'checkout', attempts } }));
    expect([top.name, ...tries.map(({ name }) => name)]).toEqual(['GET checkout', 'GET app', 'GET app-b']);
  });

  it.each([
    [{ authority: 'shop.test' }, 'http://shop.test/cart', 80],
    [{ authority: 'shop.test', scheme: 'https' }, 'https://shop.test/cart', 443],
    [{ authority: '[::1]:8443', scheme: 'https' }, 'https://[::1]:8443/cart', 8443],
    [{ authority: 'shop.test', scheme: undefined }, undefined, undefined],
    [{ authority: undefined }, undefined, undefined],
    [{ path: undefined }, undefined, 8080],
  ])('has attempts with the address that was asked for, without the query: %j', (asked, url, port) => {
    const { tries } = written(judged({ exchange: asked }));
    expect([tries[0]?.attributes['url.full'], tries[0]?.attributes['server.port']]).toEqual([url, port]);
  });

  it('is no error of the upstream’s where the caller left, nor where the upstream refused what the caller asked', () => {
    const left = judged({
      exchange: { code: undefined, flags: ['DC'] },
      verdict: { outcome: 'aborted', attempts: [{ result: 'client_cancelled', cause: undefined }] },
    });
    const notFound = judged({ exchange: { code: 404, attempts: [attempt({ code: 404 })] } });
    for (const { top, tries } of [written(left), written(notFound)]) {
      expect([top, ...tries].map(({ status, attributes }) => [status.code, attributes['error.type']])).toEqual([
        [SpanStatusCode.UNSET, undefined],
        [SpanStatusCode.UNSET, undefined],
      ]);
    }
  });

  it('has no events: what happened has its own spans and attributes', () => {
    const { top, tries } = written(masked());
    expect([top, ...tries].flatMap(({ events }) => events)).toEqual([]);
  });

  it('is an error with the flag as its type, if Envoy itself failed; and none if it answered', () => {
    const unhealthy = local('server_error', 503);
    const { top } = written({ ...unhealthy, exchange: { ...unhealthy.exchange, flags: ['UH'] } });
    expect(top.attributes).toMatchObject({
      'error.type': 'UH',
      'sidelight.local.result': 'server_error',
      'sidelight.flags': 'UH',
    });
    expect(top.status.code).toBe(SpanStatusCode.ERROR);
    expect(written(local('client_error', 401)).top.status.code).toBe(SpanStatusCode.UNSET);
  });

  it('has the gRPC status by name', () => {
    const one = judged({
      exchange: {
        isGrpc: true,
        method: 'POST',
        path: '/shop.Cart/Get?x',
        grpcStatus: 14,
        attempts: [attempt({ grpcStatus: 14 })],
      },
      verdict: { outcome: 'failed', cause: 'grpc_status', attempts: [failedBy('grpc_status')] },
    });
    const { top, tries } = written(one);
    const rpc = { 'rpc.system.name': 'grpc', 'rpc.method': 'shop.Cart/Get', 'rpc.status_code': 'UNAVAILABLE' };
    expect(top.attributes).toMatchObject({ ...rpc, 'error.type': 'UNAVAILABLE' });
    expect(tries[0]?.attributes).toMatchObject({ ...rpc, 'error.type': 'UNAVAILABLE' });
  });

  it('has a name that a client cannot choose', () => {
    const { top } = written(judged({ exchange: { method: 'BREW', route: 'coffee' } }));
    expect(top.name).toBe('HTTP coffee');
    expect(top.attributes).toMatchObject({ 'http.request.method': '_OTHER', 'http.request.method_original': 'BREW' });
  });

  it('names the service and its subset where the cluster is named after one', () => {
    const { top, tries } = written(
      judged({ exchange: { cluster: 'inbound-vip|80|http/v2|web.shop.svc.cluster.local' } }),
    );
    const service = { 'sidelight.cluster.host': 'web.shop.svc.cluster.local', 'sidelight.cluster.subset': 'v2' };
    expect(top.attributes).toMatchObject(service);
    expect(tries[0]?.attributes['sidelight.cluster']).toBe('app');
    expect(tries[0]?.attributes).not.toHaveProperty('sidelight.cluster.host');
  });

  it('says how long ago a stale endpoint had left', () => {
    const stale = pin({ pin: 'stale', leftAtMs: startMs + 20 - 39_000 });
    const { top } = written(judged({ verdict: { pin: stale } }));
    expect(top.attributes).toMatchObject({ 'sidelight.pin': 'stale', 'sidelight.pin.left_ago_ms': 39_000 });
    const unknown = written(judged({ verdict: { pin: pin({ pin: 'unknown', reason: 'no_source' }) } })).top;
    expect(unknown.attributes).toMatchObject({ 'sidelight.pin': 'unknown', 'sidelight.pin.reason': 'no_source' });
  });

  it.each([
    ['10.0.0.7', 8080, ip('10.0.0.7:8080')],
    ['::1', 8080, { text: '[::1]:8080', kind: 'ip' as const, ip: '::1', port: 8080 }],
    ['/run/app.sock', undefined, { text: '/run/app.sock', kind: 'pipe' as const, ip: undefined, port: undefined }],
    [
      '10.0.0.7',
      8080,
      { text: 'envoy://connect_originate/10.0.0.7:8080', kind: 'internal' as const, ip: '10.0.0.7', port: 8080 },
    ],
  ])('names the peer %s', (address, port, peer) => {
    const { tries } = written(judged({ exchange: { attempts: [attempt({ peer })] } }));
    expect(tries[0]?.attributes['network.peer.address']).toBe(address);
    expect(tries[0]?.attributes['network.peer.port']).toBe(port);
    expect(tries[0]?.attributes['sidelight.endpoint']).toBe(peer.text);
  });

  it('has no length where Envoy gave no duration', () => {
    const one = judged({ exchange: { durationMs: undefined, attempts: [attempt({ durationMs: undefined })] } });
    const { top, tries } = written(one);
    expect(top.endTime).toEqual(top.startTime);
    expect(tries[0]?.endTime).toEqual(tries[0]?.startTime);
  });

  it('is INTERNAL on the way out of a sidecar, SERVER on the way in', () => {
    const kindOf = (kind: typeof reporter.kind): SpanKind =>
      written(judged({ exchange: { reporter: { ...reporter, kind } } })).top.kind;
    expect(kindOf('sidecar_outbound')).toBe(SpanKind.INTERNAL);
    expect(
      ['sidecar_inbound', 'waypoint', 'gateway', 'envoy'].map((kind) => kindOf(kind as typeof reporter.kind)),
    ).toEqual([SpanKind.SERVER, SpanKind.SERVER, SpanKind.SERVER, SpanKind.SERVER]);
  });

  it('of a nameless workload belongs to an unknown service', () => {
    const { top } = written(judged({ exchange: { reporter: { ...reporter, workload: '', namespace: '' } } }));
    expect(top.resource.attributes['service.name']).toBe('unknown_service:envoy');
    expect(top.resource.attributes['service.namespace']).toBeUndefined();
  });
});

describe('the parent', () => {
  it("is the caller's span", () => {
    const { top } = written(judged({ exchange: { traceparent: `00-${traceId}-${callerSpan}-01` } }));
    expect(top.spanContext().traceId).toBe(traceId);
    expect(top.parentSpanContext).toMatchObject({ traceId, spanId: callerSpan, isRemote: true });
  });

  it('is what the tagger wrote down, and the span has the id that the upstream already knows', () => {
    const injected = { traceId, spanId: 'b7ad6b7169203331', parentSpanId: callerSpan, sampled: true };
    const { top, tries } = written(
      judged({ exchange: { injected, traceparent: `00-${traceId}-b7ad6b7169203331-01` } }),
    );
    expect(top.spanContext()).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
    expect(top.parentSpanContext?.spanId).toBe(callerSpan);
    expect(tries[0]?.parentSpanContext?.spanId).toBe('b7ad6b7169203331');
    expect(tries[0]?.spanContext().spanId).not.toBe('b7ad6b7169203331');
  });

  it('is none where the tagger began the trace', () => {
    const injected = { traceId, spanId: 'b7ad6b7169203331', parentSpanId: undefined, sampled: true };
    const { top } = written(judged({ exchange: { injected, traceparent: `00-${traceId}-b7ad6b7169203331-01` } }));
    expect(top.spanContext()).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
    expect(top.parentSpanContext).toBeUndefined();
  });

  it.each([undefined, `00-${traceId}-${callerSpan}-01`, `00-${'c'.repeat(32)}-b7ad6b7169203331-01`])(
    'never has an id that was meant to be injected while %j was sent',
    (traceparent) => {
      const injected = { traceId, spanId: 'b7ad6b7169203331', parentSpanId: undefined, sampled: true };
      const { top } = written(judged({ exchange: { injected, traceparent } }));
      expect(top.spanContext().spanId).not.toBe('b7ad6b7169203331');
      expect(top.parentSpanContext?.spanId).toBe(traceparent?.split('-')[2]);
    },
  );

  it("is Envoy's own span before all else, and the exchange is then inside", () => {
    const injected = { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), parentSpanId: undefined, sampled: true };
    const envoySpanId = 'eee19b7ec3c1b174';
    const { top } = written(
      judged({
        exchange: { envoyTraceId: traceId, envoySpanId, injected, traceparent: `00-${traceId}-${callerSpan}-01` },
      }),
    );
    expect(top.parentSpanContext).toMatchObject({ traceId, spanId: envoySpanId });
    expect(top.spanContext().spanId).not.toBe('d'.repeat(16));
    expect(top.kind).toBe(SpanKind.INTERNAL);
  });

  it('has client spans of its own for the attempts, if it says another span than the request’s: ours are inside then', () => {
    const envoySpanId = 'eee19b7ec3c1b174';
    const kindsUnder = (traceparent: string) => {
      const { top, tries } = written(masked({ exchange: { envoyTraceId: traceId, envoySpanId, traceparent } }));
      expect(top.parentSpanContext?.spanId).toBe(envoySpanId);
      return tries.map(({ kind }) => kind);
    };
    expect(kindsUnder(`00-${traceId}-${callerSpan}-01`)).toEqual([SpanKind.INTERNAL, SpanKind.INTERNAL]);
    expect(kindsUnder(`00-${traceId}-${envoySpanId}-01`)).toEqual([SpanKind.CLIENT, SpanKind.CLIENT]);
    // Of another trace: it says nothing of Envoy's spans.
    expect(kindsUnder(`00-${'a'.repeat(32)}-${callerSpan}-01`)).toEqual([SpanKind.CLIENT, SpanKind.CLIENT]);
  });

  it('of a 64-bit trace id is the same id with zeros before it', () => {
    const { top } = written(judged({ exchange: { envoyTraceId: 'a3ce929d0e0e4736', envoySpanId: callerSpan } }));
    expect(top.spanContext().traceId).toBe('0000000000000000a3ce929d0e0e4736');
  });

  it.each([
    '',
    'junk',
    `00-${'0'.repeat(32)}-${callerSpan}-01`,
    `ff-${traceId}-${callerSpan}-01`,
    `00-${traceId}-${callerSpan}-01-more`,
  ])('is none for the traceparent %j', (traceparent) => {
    const { top } = written(judged({ exchange: { traceparent } }));
    expect(top.parentSpanContext).toBeUndefined();
    expect(top.spanContext().traceId).not.toBe(traceId);
  });
});

describe('sampling', () => {
  const unsampled = `00-${traceId}-${callerSpan}-00`;
  const names = (one: JudgedExchange, sampling: Partial<Sampling> = {}): string[] => {
    const { writer, spans } = writerWith(sampling);
    writer.exchange(one, now);
    return spans().map(({ name }) => name);
  };

  it('follows the parent', () => {
    expect(names(judged({ exchange: { traceparent: unsampled } }))).toEqual([]);
    expect(names(judged({ exchange: { traceparent: `00-${traceId}-${callerSpan}-01` } }), { ratio: 0 })).toHaveLength(
      2,
    );
    const injected = { traceId, spanId: 'b7ad6b7169203331', parentSpanId: undefined, sampled: false };
    const sent = `00-${traceId}-b7ad6b7169203331-00`;
    expect(names(judged({ exchange: { injected, traceparent: sent } }))).toEqual([]);
  });

  it("follows the flag in traceparent, with Envoy's tracer on", () => {
    const envoy = { envoyTraceId: traceId, envoySpanId: 'eee19b7ec3c1b174' };
    expect(names(judged({ exchange: { ...envoy, traceparent: unsampled } }))).toEqual([]);
    // The flag of another trace says nothing of this one.
    expect(
      names(judged({ exchange: { ...envoy, traceparent: `00-${'a'.repeat(32)}-${callerSpan}-00` } })),
    ).toHaveLength(2);
  });

  it('takes of the traces that begin here a share by trace id', () => {
    expect(names(judged(), { ratio: 0 })).toEqual([]);
    expect(names(judged(), { ratio: 1 })).toHaveLength(2);
  });

  it.each([
    ['masked', masked({ exchange: { durationMs: 5 } })],
    ['exhausted', judged({ verdict: { outcome: 'exhausted' } })],
    ['aborted', judged({ verdict: { outcome: 'aborted', failedBeforeAbort: true } })],
    ['in_body', judged({ verdict: { outcome: 'failed', failedPhase: 'in_body' } })],
    ['stale', judged({ verdict: { pin: pin({ pin: 'stale' }) } })],
    ['stale_view', judged({ verdict: { pin: pin({ pin: 'stale_view' }) } })],
    ['slow', judged({ exchange: { durationMs: 1001 } })],
  ])('is overruled for what is %s, and the span says so and is sampled', (reason, one) => {
    const { top, tries } = written({ ...one, exchange: { ...one.exchange, traceparent: unsampled } });
    expect(top.attributes['sidelight.kept_reason']).toBe(reason);
    expect(top.spanContext().traceFlags).toBe(1);
    expect(tries.every((span) => span.spanContext().traceFlags === 1)).toBe(true);
  });

  it('is not overruled for a plain failure or abort, a drain, or what is just not slow', () => {
    const plain = { exchange: { traceparent: unsampled } };
    expect(names(judged({ ...plain, verdict: { outcome: 'failed' } }))).toEqual([]);
    expect(names(judged({ ...plain, verdict: { outcome: 'aborted' } }))).toEqual([]);
    expect(names(judged({ ...plain, verdict: { pin: pin({ pin: 'draining' }) } }))).toEqual([]);
    expect(names(judged({ exchange: { traceparent: unsampled, durationMs: 1000 } }))).toEqual([]);
  });

  it('is not overruled for a pin that the config expects, unless there is another reason', () => {
    const isPinExpected = (cluster: string | undefined) => cluster === 'app';
    const exchange = { traceparent: unsampled };
    const stale = { pin: pin({ pin: 'stale' }) };
    expect(names(judged({ exchange, verdict: stale }), { isPinExpected })).toEqual([]);
    expect(names(judged({ exchange: { ...exchange, cluster: 'b' }, verdict: stale }), { isPinExpected })).toHaveLength(
      2,
    );
    const { top } = written(judged({ exchange, verdict: { ...stale, outcome: 'exhausted' } }), { isPinExpected });
    expect(top.attributes['sidelight.kept_reason']).toBe('exhausted');
  });

  it('keeps only as many as the bucket of a cluster and outcome has tokens', () => {
    const { writer, spans } = writerWith();
    const one = masked({ exchange: { traceparent: unsampled } });
    const kept = [1, 2, 3].map(() => writer.exchange(one, now) !== undefined);
    expect(kept).toEqual([true, true, false]);
    expect(writer.exchange(masked({ exchange: { traceparent: unsampled, cluster: 'b' } }), now)).toBe(traceId);
    expect(writer.exchange(one, now + 1000)).toBe(traceId);
    expect(spans().filter(({ attributes }) => 'sidelight.outcome' in attributes)).toHaveLength(4);
  });
});

describe('the tracers', () => {
  it('are one per workload, bounded, and one that left comes back as it was', () => {
    const { writer, spans, tracers } = writerWith();
    for (const workload of ['a', 'b', 'c', 'a'])
      writer.exchange(judged({ exchange: { reporter: { ...reporter, workload } } }), now);
    expect(tracers.size).toBe(2);
    expect(
      spans()
        .filter(({ attributes }) => 'sidelight.outcome' in attributes)
        .map(({ resource }) => resource.attributes['service.name']),
    ).toEqual(['a', 'b', 'c', 'a']);
  });
});

describe('the span of profile tag', () => {
  it('is one, ends at the head of the response, and says retried, not masked', () => {
    const { writer, spans } = writerWith();
    const facts = {
      profile: 'tag' as const,
      reporter,
      key: 'k',
      cluster: 'app',
      route: undefined,
      upstream: ip('127.0.0.11:8080'),
      attemptCount: 2,
      code: 200,
      codeDetails: 'via_upstream',
      flags: [],
      requestStartMs: startMs,
      connectionId: '7',
      connectionAgeMs: 7000,
      method: 'GET',
      path: '/cart?user=1',
      authority: 'shop.test',
      traceparent: `00-${traceId}-b7ad6b7169203331-01`,
      debugSecret: undefined,
      injected: { traceId, spanId: 'b7ad6b7169203331', parentSpanId: callerSpan, sampled: true },
    };
    const tags = {
      cluster: 'app',
      endpoint: '127.0.0.11:8080',
      attempts: 2,
      retried: true,
      connectionId: '7',
      connectionAgeMs: 7000,
      pin: 'current' as const,
      profile: 'tag' as const,
    };
    writer.tagged({ facts, tags, pin: pin() }, startMs + 30);
    const [span, ...more] = spans();
    expect(more).toEqual([]);
    expect(span?.spanContext().spanId).toBe('b7ad6b7169203331');
    expect(span?.parentSpanContext?.spanId).toBe(callerSpan);
    expect(span?.endTime).toEqual([1_700_000_000, 30_000_000]);
    expect(span?.attributes).toMatchObject({
      'sidelight.outcome': 'unknown',
      'sidelight.unknown.reason': 'profile_tag',
      'sidelight.retried': true,
      'sidelight.attempts': 2,
      'sidelight.pin': 'current',
      'sidelight.connection.id': '7',
      'url.path': '/cart',
    });
  });
});
