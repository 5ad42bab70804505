import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { failover, retry, retryAtNextPriority, toApp } from '../fixtures/cases/parts.ts';
import { childrenOf, startJaeger, tagOf } from '../support/jaeger.ts';
import { needPart } from '../support/part.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { startLoggingEnvoy } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/* From a request through a real Envoy to a search in a real Jaeger. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const traceId = '0af7651916cd43dd8448eb211c80319c';
const callerSpan = 'b7ad6b7169203331';
const service = 'storefront';

/** `/…` goes to a dead address first and then to a living one; `/steady` to the living one alone. */
async function start(context: TestContext, protocol: 'grpc' | 'http/protobuf') {
  const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11', '127.0.0.12'] }));
  const [living, dead] = upstreams.addresses as [string, string];
  await upstreams.down('127.0.0.12');
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  // JSON is YAML.
  const list = (endpoints: string[]) => writeFileSync(file, JSON.stringify({ clusters: { steady: endpoints } }));
  list([living, dead]);
  const sidelight = cleanup.use(
    await startTestSidelight({
      otlp: { endpoint: protocol === 'grpc' ? jaeger.grpc : jaeger.http, protocol },
      discovery: { file },
      clusters: [{ match: 'steady', graceMs: 0 }],
    }),
  );
  const envoy = await startLoggingEnvoy(cleanup, service, {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [failover(dead, living, staticCluster([], { name: 'app' })), staticCluster([living], { name: 'steady' })],
    routes: [
      { name: 'steady', match: { path: '/steady' }, route: { cluster: 'steady' } },
      toApp(retry('connect-failure', retryAtNextPriority)),
    ],
  });
  const client = cleanup.use(http1Client(envoy.port('http')));
  return { jaeger, sidelight, client, list, living, dead };
}

describe.each(['grpc', 'http/protobuf'] as const)('a search in Jaeger, over OTLP %s', (protocol) => {
  it('for masked failures finds the trace, with the failed attempt before the good one', async (context) => {
    const { jaeger, client, living, dead } = await start(context, protocol);
    const beganMs = Date.now();
    const headers = { traceparent: `00-${traceId}-${callerSpan}-00` };
    const { status } = await client.request('/cart?user=1', { headers });
    expect(status).toBe(200);

    const [trace, ...more] = await jaeger.find(service, { 'sidelight.outcome': 'masked' }, beganMs);
    expect([trace?.traceID, more]).toEqual([traceId, []]);
    const exchange = trace?.spans.find((span) => tagOf(span, 'sidelight.outcome') === 'masked');
    expect(exchange?.references).toMatchObject([{ refType: 'CHILD_OF', traceID: traceId, spanID: callerSpan }]);
    expect(tagOf(exchange, 'sidelight.kept_reason')).toBe('masked');
    expect(tagOf(exchange, 'error')).toBeUndefined();

    const [failed, good, ...others] = trace ? childrenOf(trace, exchange) : [];
    expect(others).toEqual([]);
    const tags = ['error', 'sidelight.cause', 'sidelight.endpoint', 'http.request.resend_count', 'span.kind'];
    expect(tags.map((tag) => tagOf(failed, tag))).toEqual([true, 'connect_failure', dead, undefined, 'client']);
    expect(tags.map((tag) => tagOf(good, tag))).toEqual([undefined, undefined, living, 1, 'client']);
    expect(failed?.startTime).toBeLessThan(good?.startTime ?? 0);
    const endOf = (span: typeof good) => (span?.startTime ?? 0) + (span?.duration ?? 0);
    expect(exchange?.startTime).toBeLessThanOrEqual(failed?.startTime ?? 0);
    expect(endOf(good)).toBeLessThanOrEqual(endOf(exchange));
  });
});

describe('a search in Jaeger for what was kept', () => {
  it('finds the request that still went to an endpoint which had left', async (context) => {
    const { jaeger, sidelight, client, list, living, dead } = await start(context, 'grpc');
    const beganMs = Date.now();
    await client.request('/steady');
    await until('a view of the cluster', async () => (await leftOf(sidelight)) !== undefined);
    // A connection opened closer to the leaving than the clocks' uncertainty could as well have been opened after it.
    await sleep(2500);
    list([dead]);
    await until('the endpoint to have left', async () => (await leftOf(sidelight))?.includes(living) === true);
    await until('a stale pin', async () => {
      const { status } = await client.request('/steady', {
        headers: { traceparent: `00-${traceId}-${callerSpan}-00` },
      });
      expect(status).toBe(200);
      return (await sidelight.metric('sidelight_pinned_requests_total', { pin: 'stale' })) > 0;
    });
    const [trace] = await jaeger.find(service, { 'sidelight.kept_reason': 'stale' }, beganMs);
    const [span] = trace?.spans.filter((each) => tagOf(each, 'sidelight.pin') === 'stale') ?? [];
    expect(trace?.traceID).toBe(traceId);
    expect([tagOf(span, 'sidelight.outcome'), tagOf(span, 'sidelight.endpoint')]).toEqual(['ok', living]);
    expect(tagOf(span, 'sidelight.pin.left_ago_ms')).toBeGreaterThan(0);
    expect(tagOf(span, 'sidelight.connection.id')).toBeDefined();
  });
});

/** The endpoints that have left `steady`, the only cluster with a source; `undefined`: it is not known yet. */
async function leftOf(sidelight: Awaited<ReturnType<typeof startTestSidelight>>): Promise<string[] | undefined> {
  const { clusters } = await sidelight.json<{ clusters: { left: { endpoint: string }[] }[] }>('/api/v1/clusters');
  return clusters.at(0)?.left.map(({ endpoint }) => endpoint);
}
