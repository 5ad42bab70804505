import { SpanKind } from '@opentelemetry/api';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import { pinSpanAttributes } from '../../src/emit/attributes.ts';
import { SelfMetrics } from '../../src/emit/metrics/self-metrics.ts';
import { ChosenIds } from '../../src/emit/spans/ids.ts';
import { PinSpans, type PinSpansOptions } from '../../src/emit/spans/pin-spans.ts';
import { SpanWriter } from '../../src/emit/spans/span-writer.ts';
import { WorkloadTracers } from '../../src/emit/spans/workload-tracers.ts';
import type { JudgedExchange } from '../../src/model/verdict.ts';
import { clearedPin, leftAtMs, pinLife } from '../support/emit.ts';
import { endpoint, reporter } from '../support/entries.ts';
import { attempt, judged, pin } from '../support/judged.ts';

const seenMs = leftAtMs + 30_000;

function setUp(overrides: Partial<PinSpansOptions> = {}) {
  const exporter = new InMemorySpanExporter();
  const ids = new ChosenIds();
  const tracers = new WorkloadTracers({
    workloads: 10,
    instanceId: 'replica-1',
    version: '0.1.0',
    resourceAttributes: {},
    ids,
    processor: new SimpleSpanProcessor({ exporter }),
  });
  const kept = { perSecond: 1, burst: 3, buckets: 10 };
  const isPinExpected = () => false;
  const self = new SelfMetrics(() => seenMs);
  const pins = new PinSpans({ tracers, ids, kept, isPinExpected, maxPins: 10, self, ...overrides });
  const sampling = { ratio: 1, slowMs: () => 1000, kept, isPinExpected };
  const writer = new SpanWriter({ tracers, ids, sampling, pins, self });
  return {
    pins,
    spans: () => exporter.getFinishedSpans(),
    linksOf: (one: JudgedExchange) => {
      const before = exporter.getFinishedSpans().length;
      writer.exchange(one, seenMs);
      const top = exporter
        .getFinishedSpans()
        .slice(before)
        .find(({ attributes }) => 'sidelight.outcome' in attributes);
      return top?.links.map(({ context }) => context.spanId);
    },
    counted: () =>
      [...self.scope.series()]
        .filter(({ kind }) => kind.metric.name.startsWith('sidelight.self.spans'))
        .map((series) => [series.kind.own['sidelight.reason'], 'value' in series ? series.value : undefined])
        .filter(([, value]) => value !== 0),
  };
}

describe('a pin that becomes stale and is closed', () => {
  const { pins, spans } = setUp();
  pins.event('opened', pinLife({ life: { pin: 'draining' } }), leftAtMs + 500);
  pins.event('stale', pinLife(), seenMs);
  pins.event(
    'cleared',
    clearedPin({ connection: { requests: 15, bytes: 4000, lastUsedMs: leftAtMs + 59_000 } }),
    seenMs,
  );
  const [stale, cleared, ...more] = spans() as [ReadableSpan, ReadableSpan, ...ReadableSpan[]];

  it('has a trace of its own: from the departure to when it was seen stale, and from there to its end', () => {
    expect(more).toEqual([]);
    expect([stale.name, stale.kind, stale.parentSpanContext]).toEqual(['stale pin', SpanKind.INTERNAL, undefined]);
    expect([stale.startTime, stale.endTime]).toEqual([
      [1_700_000_000, 0],
      [1_700_000_030, 0],
    ]);
    expect([cleared.name, cleared.kind]).toEqual(['stale pin cleared', SpanKind.INTERNAL]);
    expect(cleared.parentSpanContext).toMatchObject(stale.spanContext());
    expect([cleared.startTime, cleared.endTime]).toEqual([
      [1_700_000_030, 0],
      [1_700_000_060, 0],
    ]);
  });

  it('belongs to the workload that holds the connection, and is sampled', () => {
    for (const span of [stale, cleared]) {
      expect(span.resource.attributes).toMatchObject({ 'service.name': 'shop', 'service.namespace': 'default' });
      expect(span.spanContext().traceFlags).toBe(1);
    }
  });

  it('says which connection, since when, how it was over, and what went over it', () => {
    expect(stale.attributes).toEqual({
      'sidelight.cluster': 'app',
      'sidelight.endpoint': '127.0.0.11:8080',
      'sidelight.layer': 'http',
      'sidelight.connection.id': '7',
      'sidelight.reporter.kind': 'envoy',
      'sidelight.reporter.pod': 'shop-1',
      'sidelight.reporter.node_id': 'shop-1.default',
      'sidelight.reporter.envoy_version': '1.40.0',
      'sidelight.pin': 'stale',
      'sidelight.source': 'dns',
      'sidelight.endpoint.left_at': '2023-11-14T22:13:20.000Z',
      'sidelight.connection.opened_at': '2023-11-14T22:12:20.000Z',
      'sidelight.connection.last_used_at': '2023-11-14T22:13:49.500Z',
      'sidelight.connection.requests': 12,
      'sidelight.connection.bytes': 3400,
    });
    expect(cleared.attributes).toEqual({
      ...stale.attributes,
      'sidelight.connection.last_used_at': '2023-11-14T22:14:19.000Z',
      'sidelight.connection.requests': 15,
      'sidelight.connection.bytes': 4000,
      'sidelight.how': 'closed',
      'sidelight.closed_by': 'server',
    });
  });

  it('has only attributes of the table, each where the table has it', () => {
    const table: Record<string, { on: string }> = pinSpanAttributes;
    for (const span of [stale, cleared])
      for (const name of Object.keys(span.attributes)) expect(['both', span.name]).toContain(table[name]?.on);
  });
});

describe('the spans of other pins', () => {
  it('of a TCP connection have bytes and no requests', () => {
    const { pins, spans } = setUp();
    pins.event('stale', pinLife({ connection: { layer: 'tcp', requests: 0 } }), seenMs);
    expect(spans()[0]?.attributes).toMatchObject({ 'sidelight.layer': 'tcp', 'sidelight.connection.bytes': 3400 });
    expect(spans()[0]?.attributes['sidelight.connection.requests']).toBeUndefined();
  });

  it('are none where the pin was gone before it was stale', () => {
    const { pins, spans, counted } = setUp();
    pins.event('opened', pinLife({ life: { pin: 'draining' } }), seenMs);
    pins.event('cleared', clearedPin({ life: { pin: 'draining' } }), seenMs);
    expect([spans(), counted()]).toEqual([[], []]);
  });

  it('are one life where a pin is stale, drains a last request, and is stale again', () => {
    const { pins, spans } = setUp();
    pins.event('stale', pinLife(), seenMs);
    pins.event('stale', pinLife(), seenMs + 10_000);
    pins.event('cleared', clearedPin({ life: { pin: 'draining' } }), seenMs);
    expect(spans().map(({ name }) => name)).toEqual(['stale pin', 'stale pin cleared']);
  });

  it('are a new life where the endpoint came back in between', () => {
    const { pins, spans } = setUp();
    pins.event('stale', pinLife(), seenMs);
    pins.event('cleared', clearedPin({ cleared: { how: 'relisted', by: undefined } }), seenMs);
    pins.event('stale', pinLife(), seenMs);
    pins.event('cleared', clearedPin(), seenMs);
    const [first, , second] = spans();
    expect(spans()).toHaveLength(4);
    expect(second?.spanContext().traceId).not.toBe(first?.spanContext().traceId);
  });

  it('are kept apart where two Envoys have the same node id', () => {
    const { pins, spans } = setUp();
    pins.event('stale', pinLife({ connection: { serial: 1 } }), seenMs);
    pins.event('stale', pinLife({ connection: { serial: 2 } }), seenMs);
    pins.event('cleared', clearedPin({ connection: { serial: 2 } }), seenMs);
    const [first, second, cleared] = spans();
    expect(first?.spanContext().traceId).not.toBe(second?.spanContext().traceId);
    expect(cleared?.parentSpanContext?.spanId).toBe(second?.spanContext().spanId);
  });

  it('leave out times that no calendar has', () => {
    const { pins, spans } = setUp();
    pins.event('stale', pinLife({ connection: { openedMs: -1e300, lastUsedMs: Number.NaN } }), seenMs);
    expect(spans()[0]?.attributes['sidelight.connection.opened_at']).toBeUndefined();
    expect(spans()[0]?.attributes['sidelight.connection.last_used_at']).toBeUndefined();
  });
});

describe('10,000 connections at one flip', () => {
  it('are as many spans as the bucket of their cluster has tokens; the others are counted, their ends too', () => {
    const { pins, spans, counted } = setUp();
    const flip = (cluster: string) =>
      Array.from({ length: 10_000 }, (_, serial) => ({ serial, connectionId: `${serial}`, cluster }));
    for (const connection of flip('app')) pins.event('stale', pinLife({ connection }), seenMs);
    for (const connection of flip('app')) pins.event('cleared', clearedPin({ connection }), seenMs);
    expect(spans().map(({ name }) => name)).toEqual([
      ...Array.from({ length: 3 }, () => 'stale pin'),
      ...Array.from({ length: 3 }, () => 'stale pin cleared'),
    ]);
    expect(counted()).toEqual([
      ['rate_limited', 2 * 9997],
      ['stale', 6],
    ]);
    pins.event('stale_view', pinLife({ connection: { cluster: 'b' }, life: { pin: 'stale_view' } }), seenMs);
    expect(spans()).toHaveLength(7);
  });

  it('are none where the config expects them', () => {
    const { pins, spans, counted } = setUp({ isPinExpected: (cluster) => cluster === 'app' });
    pins.event('stale', pinLife(), seenMs);
    pins.event('cleared', clearedPin(), seenMs);
    expect(spans()).toEqual([]);
    expect(counted()).toEqual([['unsampled', 2]]);
  });
});

describe('the span of an exchange', () => {
  const over = (found: 'current' | 'draining' | 'stale' | 'stale_view', more: Parameters<typeof attempt>[0] = {}) =>
    judged({ exchange: { attempts: [attempt(more)] }, verdict: { pin: pin({ pin: found, leftAtMs }) } });

  it('over a stale pin links to the span of the pin, and still does when the pin has just cleared', () => {
    const { pins, spans, linksOf } = setUp();
    pins.event('stale', pinLife(), seenMs);
    const of = spans()[0]?.spanContext().spanId;
    expect([linksOf(over('stale')), linksOf(over('stale_view'))]).toEqual([[of], [of]]);
    pins.event('cleared', clearedPin(), seenMs);
    expect(linksOf(over('stale'))).toEqual([of]);
  });

  it('links to nothing over any other connection, or when its own was not stale then', () => {
    const { pins, linksOf } = setUp();
    pins.event('stale', pinLife(), seenMs);
    const others = [
      over('current'),
      over('draining'),
      over('stale', { connectionId: '8' }),
      over('stale', { connectionId: undefined }),
      over('stale', { cluster: 'b' }),
      over('stale', { peer: endpoint('127.0.0.12:8080') }),
      judged({
        exchange: { reporter: { ...reporter, nodeId: 'shop-2.default' } },
        verdict: { pin: pin({ pin: 'stale' }) },
      }),
    ];
    expect(others.map(linksOf)).toEqual(others.map(() => []));
  });

  it('finds no more pins than are remembered, the latest of them', () => {
    const { pins, linksOf } = setUp({ maxPins: 2, kept: { perSecond: 1, burst: 100, buckets: 10 } });
    for (const connectionId of ['1', '2', '3'])
      pins.event('stale', pinLife({ connection: { connectionId, serial: Number(connectionId) } }), seenMs);
    const found = ['1', '2', '3'].map((connectionId) => linksOf(over('stale', { connectionId }))?.length);
    expect(found).toEqual([0, 1, 1]);
  });
});
