import { afterEach, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { asksFor, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { pinsOf } from '../support/reporting.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* What leaves Sidelight when a name moves and a real Envoy keeps its connections. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const cluster = 'moved';

it('a stale pin is a span while it lives, which its exchanges link to, and ends in another that says how', async () => {
  const dns = cleanup.use(await DnsServer.start());
  const otlp = cleanup.use(await startOtlpReceiver());
  const config = { ...asksFor([cluster], dns, 500), otlp: { endpoint: otlp.endpoint } };
  const sidelight = cleanup.use(await startTestSidelight(config));
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: cluster, kind: 'LOGICAL_DNS' });
  const named = (name: string) => otlp.spans.filter((span) => span.name === name);
  const counted = (name: string, labels = {}) =>
    sidelight.metric(`sidelight_pin_${name}_total`, { cluster, ...labels });
  const { stop } = await move.traffic();
  move.answer(newIp);
  await until('a span of each of 2 stale pins', () => named('stale pin').length === 2);
  const pins = named('stale pin');
  const { pins: live } = await pinsOf(sidelight, cluster);
  const endpoint = `${oldIp}:${move.upstreams.port}`;
  for (const { service, startMs, endMs, attributes } of pins) {
    const row = live.find(({ connectionId }) => connectionId === attributes['sidelight.connection.id']);
    expect(row?.leftAtMs).toBeCloseTo(startMs, 0);
    expect(endMs).toBeGreaterThan(startMs + 500);
    expect([service, attributes]).toMatchObject([
      cluster,
      {
        'sidelight.cluster': cluster,
        'sidelight.endpoint': endpoint,
        'sidelight.pin': 'stale',
        'sidelight.source': 'dns',
      },
    ]);
  }
  expect([await counted('events', { event: 'opened' }), await counted('events', { event: 'stale' })]).toEqual([2, 2]);

  // Those that began a while after the pins' spans were sent.
  const fromMs = Math.max(...pins.map(({ endMs }) => endMs)) + 1500;
  const over = await otlp.exchanges(
    ({ attributes, startMs }) => attributes['sidelight.pin'] === 'stale' && startMs > fromMs,
    5,
  );
  for (const { span } of over) {
    const own = pins.find(
      ({ attributes }) => attributes['sidelight.connection.id'] === span.attributes['sidelight.connection.id'],
    );
    expect(span.links).toEqual([{ traceId: own?.traceId, spanId: own?.spanId }]);
  }
  expect(await counted('requests')).toBeGreaterThan(over.length);

  move.upstreams.cycle(oldIp);
  await until('the end of both', () => named('stale pin cleared').length === 2);
  await stop();
  for (const { traceId, parentSpanId, attributes } of named('stale pin cleared')) {
    expect(pins.map(({ spanId }) => spanId)).toContain(parentSpanId);
    expect(pins.map((span) => span.traceId)).toContain(traceId);
    expect(attributes['sidelight.how']).toMatch(/^(?:closed|quiet)$/);
    expect(attributes['sidelight.connection.requests']).toBeGreaterThan(0);
  }
  expect(await counted('events', { event: 'cleared' })).toBe(2);
});

it('a pin that the config expects is marked in the metrics, has no span and keeps none', async () => {
  const dns = cleanup.use(await DnsServer.start());
  const otlp = cleanup.use(await startOtlpReceiver());
  const { clusters = [], ...config } = asksFor([cluster], dns, 500);
  const sidelight = cleanup.use(
    await startTestSidelight({
      ...config,
      clusters: clusters.map((rule) => ({ ...rule, expectPin: true })),
      otlp: { endpoint: otlp.endpoint },
      traces: { rootSampleRatio: 0 },
    }),
  );
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: cluster, kind: 'LOGICAL_DNS' });
  const { client, stop } = await move.traffic();
  move.answer(newIp);
  const stale = { cluster, pin: 'stale' };
  await until('stale requests', async () => (await move.requests('stale')) > 50);
  const count = (name: string, labels: Record<string, string>) => sidelight.metric(`sidelight_${name}`, labels);
  expect(await count('pins', { ...stale, expected: 'true' })).toBe(2);
  await stop();
  await until('every request', async () => (await move.requests()) === client.log.length);
  const requests = await move.requests('stale');
  expect(await count('pinned_requests_total', { ...stale, expected: 'true' })).toBe(requests);
  expect(await count('self_spans_dropped_total', { reason: 'unsampled' })).toBeGreaterThan(2 * requests);
  expect(await count('self_spans_kept_total', { reason: 'stale' })).toBe(0);
  expect(otlp.spans.filter(({ attributes }) => attributes['sidelight.kept_reason'] !== 'slow')).toEqual([]);
});
