import { afterEach, describe, expect, it } from 'vitest';
import type { Handler } from '../../src/lab/behaviour.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { ok, retry, toApp, unavailable } from '../fixtures/cases/parts.ts';
import { envoyTracer } from '../support/envoy-tracer.ts';
import { extProc, type Scene, startScene } from '../support/tagging-scene.ts';

/*
 * `inject`: the tagger puts a `traceparent` into the request, so that the upstream's spans become children of the span
 * that Sidelight exports. The id that went upstream and the id of that span are compared, each where it really arrives.
 */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const from = (flags: string) => ({ traceparent: `00-${caller.traceId}-${caller.spanId}-${flags}` });

/** The `traceparent` of the nth request at the upstream, in its parts; throws unless it is valid. */
function arrivedContext({ arrived }: Scene, index = 0) {
  const text = String(arrived[index]?.headers['traceparent']);
  const parts = /^00-(?<traceId>[0-9a-f]{32})-(?<spanId>[0-9a-f]{16})-(?<flags>0[01])$/.exec(text)?.groups;
  if (parts === undefined) throw new Error(`no valid traceparent: ${text}`);
  return { traceId: parts['traceId'] ?? '', spanId: parts['spanId'] ?? '', flags: parts['flags'] };
}

/** The one exchange span of this scene. */
async function exchangeSpan({ otlp }: Scene) {
  const [exchange, ...more] = await otlp.exchanges(() => true, 1);
  expect(more).toEqual([]);
  if (exchange === undefined) throw new Error('no exchange span');
  return exchange.span;
}

describe.each(['full', 'tag'] as const)('inject in profile %s', (base) => {
  const start = (name: string, more: Partial<Parameters<typeof startScene>[1]> = {}) =>
    startScene(cleanup, { name: `${name}-${base}`, base, inject: true, ...more });

  it.each([
    ['no traceparent', {}],
    ['an invalid one', { traceparent: `00-${caller.traceId}-${'0'.repeat(16)}-01` }],
    ['one that is junk', { traceparent: 'junk' }],
  ])('a request with %s begins a trace whose root is our span', async (_, headers) => {
    const scene = await start('root');
    await scene.client.request('/', { headers });
    const sent = arrivedContext(scene);
    expect(sent.flags).toBe('01');
    expect(sent.traceId).not.toBe(caller.traceId);
    expect(await exchangeSpan(scene)).toMatchObject({
      service: `root-${base}`,
      traceId: sent.traceId,
      spanId: sent.spanId,
      parentSpanId: '',
    });
  });

  it('a request in a sampled trace stays in it: the caller is our parent, we are the upstream’s', async () => {
    const scene = await start('child');
    await scene.client.request('/', { headers: from('01') });
    const sent = arrivedContext(scene);
    expect(sent).toMatchObject({ traceId: caller.traceId, flags: '01' });
    expect(sent.spanId).not.toBe(caller.spanId);
    expect(await exchangeSpan(scene)).toMatchObject({
      traceId: caller.traceId,
      spanId: sent.spanId,
      parentSpanId: caller.spanId,
    });
  });

  it('a request in an unsampled trace stays unsampled, and there is no span', async () => {
    const scene = await start('unsampled');
    await scene.client.request('/', { headers: from('00') });
    await scene.client.request('/', { headers: from('01') });
    expect(arrivedContext(scene, 0)).toMatchObject({ traceId: caller.traceId, flags: '00' });
    const span = await exchangeSpan(scene);
    expect(span.spanId).toBe(arrivedContext(scene, 1).spanId);
  });

  it('a root that is not sampled says so upstream too', async () => {
    const scene = await start('ratio', { config: { traces: { rootSampleRatio: 0 } } });
    await scene.client.request('/');
    expect(arrivedContext(scene).flags).toBe('00');
    await scene.sidelight.close();
    expect(scene.otlp.spans).toEqual([]);
  });

  it('every attempt carries the same id, that of the span they are under', async () => {
    const handler: Handler = ({ count }) => (count === 1 ? unavailable : ok);
    const scene = await start('retried', { handler, routes: [toApp(retry('5xx'))] });
    await scene.client.request('/', { headers: from('01') });
    const span = await exchangeSpan(scene);
    expect(span.attributes['sidelight.attempts']).toBe(2);
    expect([arrivedContext(scene, 0).spanId, arrivedContext(scene, 1).spanId]).toEqual([span.spanId, span.spanId]);
  });

  it('with Envoy’s own tracer on ours is under Envoy’s span, in one trace, and no other id is claimed', async () => {
    const scene = await start('traced', { ...envoyTracer });
    await scene.client.request('/', { headers: from('01') });
    await scene.client.request('/');
    const [first, second] = [arrivedContext(scene, 0), arrivedContext(scene, 1)];
    const exchanges = await scene.otlp.exchanges(() => true, 2);
    expect(exchanges.map(({ span }) => [span.traceId, span.parentSpanId])).toEqual([
      [caller.traceId, first.spanId],
      [second.traceId, second.spanId],
    ]);
    const envoys = scene.otlp.spans.filter(({ name }) => name === 'ingress');
    expect(envoys.map(({ traceId, spanId, parentSpanId }) => [traceId, spanId, parentSpanId])).toEqual([
      [caller.traceId, first.spanId, caller.spanId],
      [second.traceId, second.spanId, ''],
    ]);
  });

  it('where the config forbids the header, the caller stays the upstream’s parent and ours', async () => {
    const scene = await start('forbidden', {
      adapt: (hcm) => {
        extProc(hcm)['mutation_rules'] = { disallow_all: true };
      },
    });
    await scene.client.request('/', { headers: from('01') });
    expect(arrivedContext(scene)).toEqual({ ...caller, flags: '01' });
    const span = await exchangeSpan(scene);
    expect(span.parentSpanId).toBe(caller.spanId);
    const [line] = await scene.envoy.lines(1);
    expect(span.spanId).not.toBe(line?.sidelight?.['span_id']);
  });
});

describe('inject when the tagger does not answer, while the log arrives', () => {
  const dead = async (name: string) => {
    const port = await freePort();
    return startScene(cleanup, {
      name,
      base: 'full',
      inject: true,
      clusters: [staticCluster([`127.0.0.1:${port}`], { name: 'no-tagger', http2: true })],
      adapt: (hcm) => {
        Object.assign(extProc(hcm)['grpc_service'] as object, { envoy_grpc: { cluster_name: 'no-tagger' } });
      },
    });
  };

  it('no such span is claimed: the caller is the parent of both', async () => {
    const scene = await dead('unanswered');
    await scene.client.request('/', { headers: from('01') });
    expect(arrivedContext(scene)).toEqual({ ...caller, flags: '01' });
    expect(await exchangeSpan(scene)).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId });
  });

  it('without a caller the upstream gets nothing, and ours is a root', async () => {
    const scene = await dead('unanswered-root');
    await scene.client.request('/');
    expect(scene.arrived[0]?.headers).not.toHaveProperty('traceparent');
    expect((await exchangeSpan(scene)).parentSpanId).toBe('');
  });
});
