import { afterEach, describe, expect, it } from 'vitest';
import type { Handler } from '../../src/lab/behaviour.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { ok, retry, toApp, unavailable } from '../fixtures/cases/parts.ts';
import { envoyTracer } from '../support/envoy-tracer.ts';
import type { ReceivedSpan } from '../support/otlp-sink.ts';
import { type Scene, type SceneOptions, startScene } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/* Which exchanges become spans, and under whose: without `inject`, over real OTLP. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const from = (flags: string) => ({ headers: { traceparent: `00-${caller.traceId}-${caller.spanId}-${flags}` } });

/** Each path under `/masked` fails once, `/down` always. */
function retriedPaths(): Handler {
  const failed = new Set<string>();
  return ({ path }) => {
    if (path === '/down') return unavailable;
    if (!path.startsWith('/masked') || failed.has(path)) return path === '/slow' ? { ...ok, delayMs: 200 } : ok;
    failed.add(path);
    return unavailable;
  };
}

function start(options: SceneOptions): Promise<Scene> {
  return startScene(cleanup, { handler: retriedPaths(), routes: [toApp(retry('5xx'))], ...options });
}

/** Waits until so many exchanges were counted, then flushes every span that there will be. */
async function settled({ sidelight, otlp }: Scene, exchanges: number): Promise<readonly ReceivedSpan[]> {
  await until(`${exchanges} counted exchanges`, async () => (await counted(sidelight)) >= exchanges);
  await until('every kept span', async () => {
    return (await sidelight.metric('sidelight_self_spans_kept_total')) <= otlp.spans.filter(isOurs).length;
  });
  return otlp.spans.filter(isOurs);
}

const counted = (sidelight: Scene['sidelight']) => sidelight.metric('sidelight_requests_total');
const isOurs = ({ service }: ReceivedSpan) => service !== 'envoy-itself';
const isExchange = ({ attributes }: ReceivedSpan) => 'sidelight.outcome' in attributes;

describe.each(['full', 'observe'] as const)('parent and sampling in profile %s', (base) => {
  it('the caller’s span is the parent; an unsampled one means no span, unless the exchange was masked', async () => {
    const scene = await start({ name: `sampling-${base}`, base });
    await scene.client.request('/sampled', from('01'));
    await scene.client.request('/unsampled', from('00'));
    await scene.client.request('/masked', from('00'));
    const spans = await settled(scene, 3);

    const exchanges = spans.filter(isExchange);
    expect(exchanges.map(({ attributes }) => [attributes['url.path'], attributes['sidelight.kept_reason']])).toEqual([
      ['/sampled', undefined],
      ['/masked', 'masked'],
    ]);
    for (const { traceId, parentSpanId } of exchanges) {
      expect({ traceId, spanId: parentSpanId }).toEqual(caller);
    }
    const ids = new Set(exchanges.map(({ spanId }) => spanId));
    const attempts = spans.filter((span) => !isExchange(span));
    expect(attempts.map((span) => [span.attributes['url.path'], ids.has(span.parentSpanId)])).toEqual([
      ['/sampled', true],
      ['/masked', true],
      ['/masked', true],
    ]);
    expect(spans.filter(({ sampled }) => !sampled)).toEqual([]);
    const kept = (reason: string) => scene.sidelight.metric('sidelight_self_spans_kept_total', { reason });
    const dropped = (reason: string) => scene.sidelight.metric('sidelight_self_spans_dropped_total', { reason });
    expect([await kept('sampled'), await kept('masked'), await dropped('unsampled')]).toEqual([2, 3, 2]);
  });

  it('with Envoy’s own tracer on Envoy’s span is the parent, in the caller’s trace', async () => {
    const scene = await start({ name: `envoy-${base}`, base, ...envoyTracer });
    await scene.client.request('/masked', from('01'));
    const [exchange] = (await settled(scene, 1)).filter(isExchange);
    const [envoys] = scene.otlp.spans.filter(({ name }) => name === 'ingress');
    expect(envoys).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId });
    // INTERNAL: Envoy's is the server span.
    expect(exchange).toMatchObject({ traceId: caller.traceId, parentSpanId: envoys?.spanId, kind: 1 });
  });
});

it('without a caller an exchange begins a trace', async () => {
  const scene = await start({ name: 'root', base: 'full' });
  await scene.client.request('/masked');
  const spans = await settled(scene, 1);
  expect(spans.filter(isExchange).map(({ parentSpanId }) => parentSpanId)).toEqual(['']);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
});

it('an unsampled exchange that was slow is kept, and says so', async () => {
  const scene = await start({ name: 'slow', base: 'full', config: { traces: { slowMs: 100 } } });
  await scene.client.request('/quick', from('00'));
  await scene.client.request('/slow', from('00'));
  const spans = (await settled(scene, 2)).filter(isExchange);
  expect(spans.map(({ attributes }) => [attributes['url.path'], attributes['sidelight.kept_reason']])).toEqual([
    ['/slow', 'slow'],
  ]);
});

it('an outage is no storm of spans: each cluster and outcome has its own tokens, and what is left out is counted', async () => {
  const traces = { keepPerSecond: 0, keepBurst: 2 };
  const scene = await start({ name: 'storm', base: 'full', config: { traces } });
  for (let index = 0; index < 5; index += 1) await scene.client.request(`/masked/${index}`, from('00'));
  await scene.client.request('/down', from('00'));
  await scene.client.request('/masked/sampled', from('01'));
  const spans = (await settled(scene, 7)).filter(isExchange);
  expect(spans.map(({ attributes }) => [attributes['url.path'], attributes['sidelight.kept_reason']])).toEqual([
    ['/masked/0', 'masked'],
    ['/masked/1', 'masked'],
    ['/down', 'exhausted'],
    ['/masked/sampled', undefined],
  ]);
  // Three exchanges with two attempts each.
  expect(await scene.sidelight.metric('sidelight_self_spans_dropped_total', { reason: 'rate_limited' })).toBe(9);
});

describe('profile tag, which sees no failed attempt', () => {
  it('counts what it cannot judge as unknown, what was retried as retried, and never says masked', async () => {
    const scene = await start({ name: 'tag', base: 'tag' });
    for (const path of ['/plain', '/masked', '/down']) await scene.client.request(path);
    const spans = await settled(scene, 3);

    expect(
      spans.map(({ attributes: is }) => [is['url.path'], is['sidelight.retried'], is['sidelight.attempts']]),
    ).toEqual([
      ['/plain', false, 1],
      ['/masked', true, 2],
      ['/down', true, 3],
    ]);
    for (const { attributes } of spans) {
      expect(attributes).toMatchObject({ 'sidelight.outcome': 'unknown', 'sidelight.unknown.reason': 'profile_tag' });
    }
    const labels = { reporter_workload: 'tag', cluster: 'app' };
    expect(await scene.sidelight.metric('sidelight_requests_total', labels)).toBe(3);
    expect(await scene.sidelight.metric('sidelight_requests_total', { ...labels, outcome: 'unknown' })).toBe(3);
    expect(await scene.sidelight.metric('sidelight_retried_requests_total', labels)).toBe(2);
    expect(await scene.sidelight.metric('sidelight_attempts_total', labels)).toBe(0);
  });

  it('follows the caller, and keeps no unsampled trace for a retry alone', async () => {
    const scene = await start({ name: 'tag-sampling', base: 'tag' });
    await scene.client.request('/masked', from('00'));
    await scene.client.request('/plain', from('01'));
    const spans = await settled(scene, 2);
    expect(spans).toMatchObject([{ traceId: caller.traceId, parentSpanId: caller.spanId, sampled: true }]);
    expect(spans[0]?.attributes['url.path']).toBe('/plain');
  });

  it('with Envoy’s own tracer on is under Envoy’s span', async () => {
    const scene = await start({ name: 'tag-envoy', base: 'tag', ...envoyTracer });
    await scene.client.request('/masked', from('01'));
    const [span] = await settled(scene, 1);
    await until("Envoy's span", () => scene.otlp.spans.some(({ name }) => name === 'ingress'));
    const [envoys] = scene.otlp.spans.filter(({ name }) => name === 'ingress');
    expect(envoys).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId });
    expect(span).toMatchObject({ traceId: caller.traceId, parentSpanId: envoys?.spanId });
  });
});
