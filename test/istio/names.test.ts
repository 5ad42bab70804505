import { afterEach, describe, expect, it } from 'vitest';
import type { RecentExchange } from '../../src/emit/recent.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { parseIstioCluster } from '../../src/model/cluster-name.ts';
import { attachedInMesh } from '../support/attach.ts';
import { efcheckFacts, type FactsOptions, freeNet, startIstioSidecar } from '../support/istio.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* The names that Istio really writes: docs/istio-names.md. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const web = 'web.app.svc.cluster.local';
const db = 'db.app.svc.cluster.local';
const gateway = { labels: { istio: 'eastwestgateway' }, metadata: { ROUTER_MODE: 'sni-dnat' } };

describe.each<[string, string[], FactsOptions, string[]]>([
  [
    'a sidecar',
    ['base.yaml'],
    { proxy: 'sidecar' },
    [
      'BlackHoleCluster',
      'InboundPassthroughCluster',
      'PassthroughCluster',
      'connect_originate',
      `outbound|5432||${db}`,
      `outbound|8080|v2|${web}`,
      `outbound|8080||${web}`,
      'outbound|80||api.example.com',
    ],
  ],
  [
    'a waypoint',
    ['ambient.yaml', 'waypoint.yaml'],
    { proxy: 'waypoint' },
    [
      'connect_originate',
      'encap',
      `inbound-vip|5432|tcp|${db}`,
      `inbound-vip|8080|http/v2|${web}`,
      `inbound-vip|8080|http|${web}`,
      'inbound-vip|80|http|api.example.com',
      'inner_connect_originate',
      'main_internal',
      'outer_connect_originate',
    ],
  ],
  [
    'a gateway that passes TLS on',
    ['base.yaml'],
    { proxy: 'router', ...gateway },
    [
      'BlackHoleCluster',
      'connect_originate',
      `outbound_.5432_._.${db}`,
      `outbound_.8080_.v2_.${web}`,
      `outbound_.8080_._.${web}`,
      `outbound|5432||${db}`,
      `outbound|8080|v2|${web}`,
      `outbound|8080||${web}`,
      'outbound|80||api.example.com',
    ],
  ],
])('the clusters of %s', (_, fixtures, options, names) => {
  it('have these names, and what names a service is read', (context) => {
    const facts = efcheckFacts(context, cleanup, [...fixtures, 'names.yaml'], options);
    const found = facts.flatMap((fact) => /^cds (\S+) /.exec(fact)?.[1] ?? []);
    expect(found.toSorted()).toEqual(names.toSorted());
    const hosts = new Set(found.map((name) => parseIstioCluster(name)?.fqdn));
    expect(hosts).toEqual(new Set([web, db, 'api.example.com', undefined]));
  });
});

it('a waypoint asks DNS for a host outside the mesh', (context) => {
  const fixtures = ['ambient.yaml', 'waypoint.yaml', 'names.yaml'];
  const facts = efcheckFacts(context, cleanup, fixtures, { proxy: 'waypoint' });
  expect(facts.join('\n')).toContain('cds inbound-vip|80|http|api.example.com type=STRICT_DNS');
});

it('a request that finds no host has the cluster’s own name: the one for statistics ends with a semicolon', async (context) => {
  const net = await freeNet();
  const sidelight = cleanup.use(await startTestSidelight({ tagging: { responseHeaders: 'always' } }));
  const yaml = [attachedInMesh('--to sidecar-outbound --selector app=client')];
  const sidecar = await startIstioSidecar(context, cleanup, { net, sidelightPort: sidelight.grpcPort, yaml });
  const client = await sidecar.client();
  // Nothing redirects traffic here, so that Envoy does not know where the client wanted to.
  const { status, headers } = await client.request('/', { headers: { host: 'example.com' } });
  expect([status, headers['x-sidelight-cluster']]).toEqual([503, 'PassthroughCluster']);
  const local = async () =>
    (await sidelight.json<{ exchanges: RecentExchange[] }>('/api/v1/exchanges?outcome=local')).exchanges;
  await until('the exchange', async () => (await local()).length > 0);
  expect(await local()).toMatchObject([
    { cluster: 'PassthroughCluster', flags: ['UH'], attempts: [], reporterKind: 'sidecar_outbound' },
  ]);
  expect(await sidecar.envoy.admin.stats('^cluster.PassthroughCluster;.upstream_cx_total$')).toHaveProperty('size', 1);
});
