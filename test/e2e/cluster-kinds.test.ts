import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { ApiCluster } from '../../src/cli/demo/sidelight-process.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { dnsCluster, staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import type { Cluster, HttpFilter, Json } from '../../src/lab/envoy-config.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { openGate } from '../support/gate.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { startLoggingEnvoy } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/* Clusters that are no list of endpoints: what a real Envoy calls them, and that no pin comes of what it lists for them. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const first = '127.0.0.11';
const second = '127.0.0.12';

function typed(name: string, type: string, config: Json): Json {
  return { name, typed_config: { '@type': `type.googleapis.com/${type}`, ...config } };
}

function custom(name: string, type: string, config: Json): Cluster {
  const cluster_type = typed(`envoy.clusters.${type}`, `envoy.extensions.clusters.${type}.v3.ClusterConfig`, config);
  return { name, connect_timeout: '0.25s', lb_policy: 'CLUSTER_PROVIDED', cluster_type };
}

/** The names of a dynamic forward proxy are asked of the private DNS server. */
function nameCache(dnsPort: number): Json {
  const { typed_dns_resolver_config } = dnsCluster({ name: '', kind: 'STRICT_DNS', host: 'x', port: 1, dnsPort });
  return { name: 'names', dns_lookup_family: 'V4_ONLY', dns_refresh_rate: '1s', typed_dns_resolver_config };
}

async function start() {
  const admin = cleanup.use(await openGate());
  const otlp = cleanup.use(await startOtlpReceiver());
  const dns = cleanup.use(await DnsServer.start());
  const upstreams = cleanup.use(await Upstreams.start({ ips: [first, second] }));
  const sidelight = cleanup.use(
    await startTestSidelight({
      otlp: { endpoint: otlp.endpoint },
      tagging: { responseHeaders: 'always' },
      discovery: { envoyAdmin: { urls: [admin.url], refreshMs: 500 } },
      clusters: [{ match: '*', graceMs: 0 }],
    }),
  );
  const dns_cache_config = nameCache(dns.port);
  const forwardProxy = 'envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig';
  const envoy = await startLoggingEnvoy(cleanup, 'kinds', {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [
      staticCluster([], { name: 'empty' }),
      staticCluster([`${first}:${upstreams.port}`], { name: 'member' }),
      custom('aggregate', 'aggregate', { clusters: ['empty', 'member'] }),
      custom('deserted', 'aggregate', { clusters: ['empty'] }),
      custom('dynamic', 'dynamic_forward_proxy', { dns_cache_config }),
      {
        name: 'original',
        type: 'ORIGINAL_DST',
        connect_timeout: '0.25s',
        lb_policy: 'CLUSTER_PROVIDED',
        cleanup_interval: '0.5s',
        original_dst_lb_config: { use_http_header: true },
      },
    ],
    earlierFilters: [
      typed('envoy.filters.http.dynamic_forward_proxy', forwardProxy, { dns_cache_config }) as HttpFilter,
    ],
    routes: ['aggregate', 'deserted', 'dynamic', 'original'].map((cluster) => ({
      name: cluster,
      match: { path: `/${cluster}` },
      route: { cluster },
    })),
  });
  admin.leadTo(envoy.admin.port);
  const client = cleanup.use(http1Client(envoy.port('http')));
  const lists = async () => {
    const { clusters } = await sidelight.json<{ clusters: ApiCluster[] }>('/api/v1/clusters');
    return clusters.map(({ cluster, listed }) => `${cluster} ${listed.length}`);
  };
  return {
    sidelight,
    dns,
    client,
    otlp,
    port: upstreams.port,
    /** Sidelight has asked Envoy for every cluster that had a request before. These, and `member`, are all that have a list. */
    asked: async (...others: string[]) => {
      await client.request('/aggregate');
      await until('Envoy’s own lists', async () => (await lists()).includes('member 1'));
      expect((await lists()).toSorted()).toEqual([...others, 'member 1']);
    },
  };
}

/** Cluster, endpoint, outcome, pin and its reason of each exchange of a route, by start; waits for so many. */
async function told(otlp: OtlpReceiver, route: string, count: number): Promise<unknown[][]> {
  const exchanges = await otlp.exchanges(({ attributes }) => attributes['sidelight.route'] === route, count);
  return exchanges
    .map(({ span }) => span)
    .toSorted((a, b) => a.startMs - b.startMs)
    .map(({ attributes }) =>
      ['cluster', 'endpoint', 'outcome', 'pin', 'pin.reason'].map((name) => attributes[`sidelight.${name}`]),
    );
}

it('an aggregate is logged as the member that had the host, else by its own name; a tag has its own name', async () => {
  const { client, otlp, port } = await start();
  const served = await client.request('/aggregate');
  const unserved = await client.request('/deserted');
  expect([served.status, served.headers['x-sidelight-cluster']]).toEqual([200, 'aggregate']);
  expect([unserved.status, unserved.headers['x-sidelight-cluster']]).toEqual([503, 'deserted']);
  expect((await told(otlp, 'aggregate', 1))[0]?.slice(0, 3)).toEqual(['member', `${first}:${port}`, 'ok']);
  expect((await told(otlp, 'deserted', 1))[0]?.slice(0, 3)).toEqual(['deserted', undefined, 'local']);
});

it('where the client chose the address (ORIGINAL_DST), what Envoy lists is no list, and no pin is ever stale', async () => {
  const { client, otlp, asked, port } = await start();
  const to = (ip: string) => client.request('/original', { headers: { 'x-envoy-original-dst-host': `${ip}:${port}` } });
  expect((await to(first)).status).toBe(200);
  await asked();
  expect((await to(second)).headers['x-sidelight-pin']).toBe('unknown');
  expect((await to(first)).headers['x-sidelight-pin']).toBe('unknown');
  const facts = await told(otlp, 'original', 3);
  expect(facts.slice(1)).toEqual(
    [second, first].map((ip) => ['original', `${ip}:${port}`, 'ok', 'unknown', 'no_source']),
  );
});

it('a dynamic forward proxy goes on to the old address while it has traffic: a stale pin, by its own list', async () => {
  const { client, otlp, dns, asked, sidelight, port } = await start();
  dns.set('any.test', { kind: 'addresses', addresses: [first], ttlSeconds: 1 });
  const send = () => client.request('/dynamic', { headers: { host: `any.test:${port}` } });
  expect((await send()).status).toBe(200);
  await asked('dynamic 1');
  // A connection opened closer to the leaving than the clocks' uncertainty could as well have been opened after it.
  await sleep(2500);
  dns.set('any.test', { kind: 'addresses', addresses: [second], ttlSeconds: 1 });
  await until('a stale pin', async () => {
    await send();
    return (await sidelight.metric('sidelight_pinned_requests_total', { cluster: 'dynamic', pin: 'stale' })) > 0;
  });
  const stale = await otlp.exchanges(({ attributes }) => attributes['sidelight.pin'] === 'stale', 1);
  expect(stale[0]?.span.attributes).toMatchObject({
    'sidelight.cluster': 'dynamic',
    'sidelight.endpoint': `${first}:${port}`,
  });
});
