import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { attachedInMesh } from '../support/attach.ts';
import { freeNet, istioPorts, startIstioSidecar, startIstioWaypoint } from '../support/istio.ts';
import { childrenOf, startJaeger, tagOf } from '../support/jaeger.ts';
import { needPart } from '../support/part.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* Istio's own config, our parts in it, real traffic: what a retry hid is seen, and by whom. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const reporters = {
  sidecar: {
    start: startIstioSidecar,
    target: '--to sidecar-outbound --selector app=client',
    cluster: 'outbound|8080||web.app.svc.cluster.local',
    reporter: { reporter_kind: 'sidecar_outbound', reporter_workload: 'client', reporter_namespace: 'app' },
  },
  waypoint: {
    start: startIstioWaypoint,
    target: '--to waypoint',
    cluster: 'inbound-vip|8080|http|web.app.svc.cluster.local',
    reporter: { reporter_kind: 'waypoint', reporter_workload: 'waypoint', reporter_namespace: 'app' },
  },
} as const;

describe.each([
  ['sidecar', "the mesh's own cluster", () => '--service sidelight.sidelight'],
  ['sidecar', 'a cluster of its own', (port: number) => `--address 127.0.0.1:${port}`],
  ['waypoint', "the mesh's own cluster", () => '--service sidelight.sidelight'],
  ['waypoint', 'a cluster of its own', (port: number) => `--address 127.0.0.1:${port}`],
] as const)('a %s on which one endpoint answers 503 and one refuses, attached by %s', (proxy, _, place) => {
  const { start, target, cluster, reporter } = reporters[proxy];

  it('masks both, and each attempt is seen, counted and found in Jaeger', async (context: TestContext) => {
    const net = await freeNet();
    const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
    const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: jaeger.grpc } }));
    const [good, bad, dead] = [`${net}.11`, `${net}.12`, `${net}.13`];
    const web = cleanup.use(await Upstreams.start({ ips: [good, bad], port: istioPorts.endpoint }));
    web.handle(() => ({ kind: 'respond', status: 503 }), bad);
    const yaml = [attachedInMesh(target, place(sidelight.grpcPort)), 'retries.yaml'];
    const istio = await start(context, cleanup, { net, sidelightPort: sidelight.grpcPort, yaml });
    const client = await istio.client();
    const beganMs = Date.now();
    const maskedBy = (cause: string) =>
      sidelight.metric('sidelight_masked_latency_seconds_count', { ...reporter, cluster, cause });
    await until('a request that each of them failed first', async () => {
      await client.request('/cart');
      return (await maskedBy('status_5xx')) > 0 && (await maskedBy('connect_failure')) > 0;
    });
    const outcomes = (outcome: string) =>
      sidelight.metric('sidelight_requests_total', { ...reporter, cluster, outcome });
    // Now and then every try meets one of the two.
    const seen = (wanted: number) => client.log.filter(({ status }) => status === wanted).length;
    await until('what the client saw', async () => {
      const succeeded = (await outcomes('ok')) + (await outcomes('masked'));
      return succeeded === seen(200) && (await outcomes('exhausted')) === seen(503);
    });
    // Nothing has another cluster or another reporter.
    expect(await sidelight.metric('sidelight_requests_total')).toBe(client.log.length);

    const where: Record<string, string> = { status_5xx: bad, connect_failure: dead };
    for (const [cause, ip] of Object.entries(where)) {
      const tags = { 'sidelight.outcome': 'masked', 'sidelight.cause': cause };
      const [trace] = await jaeger.find(reporter.reporter_workload, tags, beganMs);
      const exchange = trace?.spans.find((span) => tagOf(span, 'sidelight.outcome') === 'masked');
      const attempts = trace === undefined ? [] : childrenOf(trace, exchange);
      expect(tagOf(exchange, 'sidelight.cluster')).toBe(cluster);
      expect(tagOf(exchange, 'sidelight.cluster.host')).toBe('web.app.svc.cluster.local');
      expect(tagOf(exchange, 'sidelight.reporter.kind')).toBe(reporter.reporter_kind);
      expect(attempts.length).toBeGreaterThan(1);
      expect(tagOf(attempts[0], 'sidelight.cause')).toBe(cause);
      expect(tagOf(attempts[0], 'network.peer.address')).toBe(ip);
      expect(tagOf(attempts.at(-1), 'sidelight.result')).toBe('ok');
      expect(tagOf(attempts.at(-1), 'network.peer.address')).toBe(good);
    }
  });
});
