import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it, type TestContext } from 'vitest';
import { behaviourFromPath } from '../../src/lab/behaviour.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { istioRetries, manyRetries } from '../../src/lab/istio-defaults.ts';
import { drive } from '../../src/lab/load.ts';
import { counts } from '../support/counts.ts';
import { type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts';
import { keepSending } from '../support/reporting.ts';
import { namespace, type RollingPodsOptions, setUpRollingPods } from '../support/rolling-pods.ts';
import { until } from '../support/until.ts';

/* Pods that come and go under traffic: EndpointSlices of a real API server, and a real Envoy. */
const everything = new Cleanup();
afterAll(() => everything.run());
let started: Promise<KubernetesApi> | undefined;

async function setUp(context: TestContext, options: RollingPodsOptions) {
  started ??= startKubernetesApi(context, everything);
  const api = await started;
  await api.admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const cleanup = new Cleanup();
  everything.defer(() => cleanup.run());
  return { api, cleanup, ...(await setUpRollingPods(cleanup, api, options)) };
}

const [a, b, c, spare] = ['127.0.0.41', '127.0.0.42', '127.0.0.43', '127.0.0.44'] as const;
const pod = (ip: string, uid: string) => ({ ip, uid });

/** Replaces three pods, one after the other; each new one but the first has the address of the pod that ended before it. */
async function roll(rolling: Awaited<ReturnType<typeof setUp>>, { preStopMs }: { preStopMs: number }) {
  const { set, upstreams, listedByEnvoy } = rolling;
  const old = [pod(a, 'old-1'), pod(b, 'old-2'), pod(c, 'old-3')];
  const fresh = [pod(spare, 'new-1'), pod(a, 'new-2'), pod(b, 'new-3')];
  for (const [i, ending] of old.entries()) {
    const next = fresh[i] as (typeof fresh)[number];
    const others = [...fresh.slice(0, i), ...old.slice(i + 1)];
    await upstreams.up(next.ip);
    upstreams.handle(behaviourFromPath, next.ip);
    await set(...others, ending, { ...next, ready: false });
    const isTold = async () => (await listedByEnvoy()).every((ip) => ip !== ending.ip);
    if (preStopMs > 0) {
      await set(...others, next, { ...ending, terminating: true });
      await until('Envoy to follow', isTold);
      await sleep(preStopMs);
      await upstreams.down(ending.ip);
    } else {
      // Going down it answers 503, then its port is closed, then it is taken out.
      upstreams.handle(() => ({ kind: 'respond', status: 503 }), ending.ip);
      await sleep(300);
      await upstreams.down(ending.ip);
      await sleep(100);
      await set(...others, next, { ...ending, terminating: true });
      await until('Envoy to follow', isTold);
    }
    await set(...others, next);
    await until('requests on the new one', () => upstreams.requests(next.ip) > 0);
  }
}

async function startRollout(context: TestContext, name: string) {
  const rolling = await setUp(context, {
    name,
    ips: [a, b, c, spare],
    first: [pod(a, 'old-1'), pod(b, 'old-2'), pod(c, 'old-3')],
    graceMs: 1000,
    extra: manyRetries,
    action: { retry_policy: istioRetries },
  });
  await rolling.upstreams.down(spare);
  const traffic = keepSending(rolling.cleanup, rolling.envoy, { concurrency: 4, pauseMs: 10 });
  await rolling.untilCurrent();
  return { rolling, traffic };
}

/** Nothing was called stale, and what is in use in the end is current. */
async function expectNoFalsePin({ requests, pinEvents, connections }: Awaited<ReturnType<typeof setUp>>) {
  for (const pin of ['stale', 'stale_view', 'unlisted']) expect([pin, await requests(pin)]).toEqual([pin, 0]);
  for (const event of ['stale', 'stale_view']) expect([event, await pinEvents(event)]).toEqual([event, 0]);
  await until('all in use to be current', async () => (await connections('current')) > 0);
  await until('no pin', async () => (await connections('draining')) + (await connections('unknown')) === 0);
}

it('C1 three pods are rolled, addresses are used again: masked and surfaced side by side, and no false stale pin', async (context) => {
  const { rolling, traffic } = await startRollout(context, 'c1');
  await roll(rolling, { preStopMs: 0 });
  await expectNoFalsePin(rolling);
  await traffic.stop();
  const seen = await counts(rolling.sidelight, { cluster: 'c1' }, traffic.client.log.length);
  const { masked = 0, failed = 0, exhausted = 0 } = seen.outcomes;
  expect(masked).toBe(await rolling.envoy.admin.stat('cluster.c1.upstream_rq_retry_success'));
  expect(failed + exhausted).toBe(traffic.failures());
  expect(failed).toBeGreaterThan(0);
  const { earlier, left } = (await rolling.cluster()) as unknown as Record<string, { endpoint: string }[]>;
  expect(earlier?.map(({ endpoint }) => endpoint).toSorted()).toEqual([a, b]);
  expect(left?.map(({ endpoint }) => endpoint)).toEqual([c]);
});

it('C2 with a preStop sleep nothing goes wrong, and no pin is stale', async (context) => {
  const { rolling, traffic } = await startRollout(context, 'c2');
  await roll(rolling, { preStopMs: 300 });
  await expectNoFalsePin(rolling);
  await traffic.stop();
  const seen = await counts(rolling.sidelight, { cluster: 'c2' }, traffic.client.log.length);
  expect(seen.outcomes).toEqual({ ok: traffic.client.log.length });
  expect(traffic.failures()).toBe(0);
});

it('C3 at a waypoint, two pods die before they are taken out: masked, and exhausted with both causes; the waypoint is named', async (context) => {
  const cluster = 'inbound-vip|80|http|c3.shop.svc.cluster.local';
  const pods = [pod(a, 'pod-a'), pod(b, 'pod-b'), pod(c, 'pod-c')];
  const rolling = await setUp(context, {
    name: 'c3',
    cluster,
    nodeId: 'waypoint~127.0.0.1~waypoint-1.shop~shop.svc.cluster.local',
    ips: [a, b, c],
    first: pods,
    graceMs: 1000,
    extra: manyRetries,
    action: { retry_policy: { ...istioRetries, num_retries: 1 } },
  });
  const traffic = keepSending(rolling.cleanup, rolling.envoy, { concurrency: 4, pauseMs: 10 });
  await rolling.untilCurrent();
  const outcome = (name: string) => rolling.sidelight.metric('sidelight_requests_total', { cluster, outcome: name });
  await rolling.upstreams.down(a);
  await until('masked failures', async () => (await outcome('masked')) > 0);
  await rolling.upstreams.down(b);
  await until('exhausted retries', async () => (await outcome('exhausted')) > 0);
  await rolling.set(pod(c, 'pod-c'));
  await until('the two to have left', async () => (await rolling.listedByEnvoy()).length === 1);
  await expectNoFalsePin(rolling);
  await traffic.stop();
  const seen = await counts(rolling.sidelight, { cluster }, traffic.client.log.length);
  // What was under way on a pod that died is cut, and a cut is not retried here.
  const { ok = 0, masked = 0, exhausted = 0, failed = 0, ...others } = seen.outcomes;
  expect([ok + masked + exhausted + failed, others]).toEqual([traffic.client.log.length, {}]);
  expect(exhausted + failed).toBe(traffic.failures());
  const { exchanges } = await rolling.sidelight.json<{ exchanges: Record<string, unknown>[] }>(
    '/api/v1/exchanges?outcome=exhausted',
  );
  expect(exchanges[0]).toMatchObject({
    flags: ['UF', 'URX'],
    reporterKind: 'waypoint',
    pod: 'waypoint-1',
    namespace: 'shop',
    attempts: [{ cause: 'connect_failure' }, { cause: 'connect_failure' }],
  });
});

it('an address that passes to another pod while connections stay: those of before are stale pins, later ones are current', async (context) => {
  const rolling = await setUp(context, { name: 'reuse', ips: [a], first: [pod(a, 'pod-a')], graceMs: 1000 });
  const traffic = keepSending(rolling.cleanup, rolling.envoy);
  await rolling.untilCurrent();
  // A connection opened closer to the change than clocks and the way of the event allow could be on either pod.
  await sleep(3000);
  await rolling.set(pod(a, 'pod-b'));
  // Each by its last request: one that began in the grace is draining until the next.
  await until('stale pins alone', async () => {
    const { pins } = await rolling.pins();
    return pins.length > 0 && pins.every(({ pin }) => pin === 'stale');
  });
  for (const pin of (await rolling.pins()).pins)
    expect(pin).toMatchObject({ pin: 'stale', source: 'kubernetes', endpoint: `${a}:${rolling.upstreams.port}` });
  expect(await rolling.endpoint(a)).toMatchObject({ state: 'listed' });
  await sleep(2000);
  await rolling.upstreams.down(a);
  await rolling.upstreams.up(a);
  await until('the pins to be over', async () => (await rolling.connections('stale')) === 0);
  await until('current ones', async () => (await rolling.connections('current')) > 0);
  await until('no other ones', async () => (await rolling.pins()).pins.every(({ pin }) => pin === 'current'));
  await traffic.stop();
});

it('while the API server is away the pins become unknown, and after it what left meanwhile is a pin at once', async (context) => {
  const rolling = await setUp(context, {
    name: 'cut',
    ips: [a, b],
    first: [pod(a, 'pod-a'), pod(b, 'pod-b')],
    graceMs: 1000,
  });
  const traffic = keepSending(rolling.cleanup, rolling.envoy);
  await rolling.untilCurrent();
  await rolling.api.stop();
  await until('unknown pins', async () => (await rolling.connections('unknown')) > 0, 30_000);
  const { pins } = await rolling.pins();
  expect(pins.map(({ pin, reason }) => [pin, reason])).toEqual(pins.map(() => ['unknown', 'source_stale']));
  expect(await rolling.cluster()).toMatchObject({ stale: true, lastError: expect.any(String) });
  await rolling.api.start();
  await rolling.tellKubernetes([pod(b, 'pod-b')]);
  await until('stale pins', async () => (await rolling.connections('stale')) > 0, 30_000);
  for (const { pin, endpoint } of (await rolling.pins()).pins)
    expect([endpoint.split(':')[0], pin]).toEqual(endpoint.startsWith(a) ? [a, 'stale'] : [b, 'current']);
  expect(await rolling.cluster()).toMatchObject({ stale: false });
  await traffic.stop();
});

it('D3 balanced so that it gets nothing: listed endpoints without evidence are named', async (context) => {
  const ips = [a, b, c, spare];
  const rolling = await setUp(context, {
    name: 'd3',
    ips,
    first: ips.map((ip) => pod(ip, `pod-${ip}`)),
    graceMs: 1000,
    extra: { lb_policy: 'RING_HASH' },
    action: { hash_policy: [{ connection_properties: { source_ip: true } }] },
  });
  const client = rolling.cleanup.use(http1Client(rolling.envoy.port('http'), 8));
  await drive(() => client.request('/'), { concurrency: 8, total: 60 });
  await counts(rolling.sidelight, { cluster: 'd3' }, 60);
  const unused = () => rolling.sidelight.metric('sidelight_endpoint_unused', { cluster: 'd3' });
  await until('three without evidence', async () => (await unused()) === 3);
  expect(await rolling.sidelight.metric('sidelight_endpoint_listed', { cluster: 'd3', source: 'kubernetes' })).toBe(4);
  const reports = await Promise.all(ips.map((ip) => rolling.endpoint(ip)));
  expect(reports.filter((report) => report?.requests === 0)).toHaveLength(3);
});
