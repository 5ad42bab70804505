import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { runAttach } from '../support/attach.ts';
import { attachedChains } from '../support/istio/attached.ts';
import { efcheckGenerates, type FactsOptions, type Generated } from '../support/istio.ts';

/* Every form of `sidelight attach` for Istio goes through Istio's own generator: it must land where it should, and nowhere else. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const client: FactsOptions = { proxy: 'sidecar', labels: { app: 'client' } };
const web: FactsOptions = { proxy: 'sidecar', labels: { app: 'web' }, ip: '127.0.0.11' };
const elsewhere: FactsOptions = { proxy: 'sidecar', namespace: 'other', labels: { app: 'client' } };
const waypoint: FactsOptions = { proxy: 'waypoint' };
const gateway: FactsOptions = { proxy: 'router', labels: { istio: 'ingressgateway' }, ip: '127.0.0.30' };
const meshes = {
  sidecar: ['base.yaml', 'sidelight.yaml'],
  router: ['base.yaml', 'sidelight.yaml', 'gateway.yaml'],
  waypoint: ['ambient.yaml', 'sidelight.yaml', 'waypoint.yaml'],
};

function generated(context: TestContext, proxy: FactsOptions, command: string): Generated {
  return efcheckGenerates(context, cleanup, [...meshes[proxy.proxy], runAttach(...command.split(' '))], proxy);
}

/** What a filter chain has of a profile, as `attachedChains` tells it. */
const http = {
  observe: 'http key, log sidelight.observe.2, attempts sidelight.observe.2, every 5s',
  full: 'http key, log sidelight.full.2, header_mutation.sidelight_remove, ext_proc.sidelight, header_mutation.sidelight_add, router, attempts sidelight.full.2, every 5s',
  tag: 'http key, header_mutation.sidelight_remove, ext_proc.sidelight, header_mutation.sidelight_add, router',
};
const tcp = { observe: 'tcp log sidelight.observe.2, every 5s', full: 'tcp log sidelight.full.2, every 5s' };

const outbound = (profile: 'observe' | 'full') => [
  `0.0.0.0_50051 - ${http[profile]}`,
  `0.0.0.0_50051 PassthroughFilterChain ${tcp[profile]}`,
  `0.0.0.0_8080 - ${http[profile]}`,
  `0.0.0.0_8080 PassthroughFilterChain ${tcp[profile]}`,
  `virtualOutbound virtualOutbound-blackhole ${tcp[profile]}`,
  `virtualOutbound virtualOutbound-catchall-tcp ${tcp[profile]}`,
];
const passthroughInbound = [
  `virtualInbound virtualInbound-blackhole ${tcp.full}`,
  `virtualInbound virtualInbound-catchall-http ${http.full}`,
  `virtualInbound virtualInbound-catchall-http ${http.full}`,
  `virtualInbound virtualInbound ${tcp.full}`,
  `virtualInbound virtualInbound ${tcp.full}`,
  `virtualInbound virtualInbound ${tcp.full}`,
];
// One for plain text and one for mTLS.
const webInbound = [`virtualInbound 0.0.0.0_18080 ${http.full}`, `virtualInbound 0.0.0.0_18080 ${http.full}`];
const webVip = 'main_internal inbound-vip|8080|http|web.app.svc.cluster.local';
const waypointChains = [
  `${webVip} ${http.full}`,
  `main_internal direct-tcp ${tcp.full}`,
  `main_internal direct-http ${http.full}`,
];

describe.each<[string, FactsOptions, string, string[]]>([
  ['a namespace', client, '--to sidecar-outbound --namespace app', outbound('observe')],
  ['a workload', client, '--to sidecar-outbound --namespace app --selector app=client', outbound('observe')],
  ['the whole mesh', client, '--to sidecar-outbound --mesh', outbound('observe')],
  ['the whole mesh, in another namespace', elsewhere, '--to sidecar-outbound --mesh', outbound('observe')],
  ['a workload, wherever it is', elsewhere, '--to sidecar-outbound --mesh --selector app=client', outbound('observe')],
  ['both logs and tags', client, '--to sidecar-outbound --namespace app --profile full', outbound('full')],
  [
    'one port',
    client,
    '--to sidecar-outbound --namespace app --port 8080',
    [`0.0.0.0_8080 - ${http.observe}`, `0.0.0.0_8080 PassthroughFilterChain ${tcp.observe}`],
  ],
  [
    'no TCP',
    client,
    '--to sidecar-outbound --namespace app --no-tcp',
    [`0.0.0.0_50051 - ${http.observe}`, `0.0.0.0_8080 - ${http.observe}`],
  ],
  [
    'tags, sampled, in an Istio whose Envoy cannot log',
    { ...client, version: '1.28.0' },
    '--to sidecar-outbound --namespace app --profile tag --istio 1.28 --inject --sample 10%',
    [`0.0.0.0_50051 - ${http.tag}`, `0.0.0.0_8080 - ${http.tag}`],
  ],
  [
    'the inbound side',
    web,
    '--to sidecar-inbound --namespace app --profile full',
    [...passthroughInbound, ...webInbound],
  ],
  ['one port of the inbound side', web, '--to sidecar-inbound --namespace app --profile full --port 18080', webInbound],
  ['a waypoint', waypoint, '--to waypoint --namespace app --profile full', waypointChains],
  [
    'a waypoint by its name',
    waypoint,
    '--to waypoint --namespace app --gateway waypoint --profile full',
    waypointChains,
  ],
  ['every waypoint', waypoint, '--to waypoint --mesh --profile full', waypointChains],
  [
    'one service of a waypoint',
    waypoint,
    '--to waypoint --namespace app --only web.app.svc.cluster.local:8080 --profile full',
    [`${webVip} ${http.full}`],
  ],
  [
    'a gateway by its labels',
    gateway,
    '--to gateway --namespace app --selector istio=ingressgateway --profile full',
    [`0.0.0.0_80 - ${http.full}`, `0.0.0.0_9000 - ${tcp.full}`],
  ],
  ['every gateway', gateway, '--to gateway --mesh', [`0.0.0.0_80 - ${http.observe}`, `0.0.0.0_9000 - ${tcp.observe}`]],
])('attached to %s', (_, proxy, command, expected) => {
  it('lands on these filter chains, each part in its order, and on no other', (context) => {
    expect(attachedChains(generated(context, proxy, command).listeners)).toEqual(expected);
  });

  it('brings the cluster by which the proxy reaches Sidelight, once, and with what bounds one that hangs', (context) => {
    const ours = generated(context, proxy, command).clusters.filter(({ name }) => name === 'sidelight');
    expect(ours).toHaveLength(1);
    expect(ours[0]).toMatchObject({
      type: 'STRICT_DNS',
      healthChecks: [{ grpcHealthCheck: {}, interval: '4s', noTrafficInterval: '4s', unhealthyThreshold: 1 }],
      commonLbConfig: { healthyPanicThreshold: {} },
    });
  });
});

describe.each<[string, FactsOptions, string]>([
  ['a workload, on another one', web, '--to sidecar-outbound --namespace app --selector app=client'],
  ['a namespace, in another one', elsewhere, '--to sidecar-outbound --namespace app'],
  ['a waypoint, on a sidecar', client, '--to waypoint --namespace app'],
  ['sidecars, on a waypoint', waypoint, '--to sidecar-outbound --mesh'],
  ['the inbound side, on a waypoint', waypoint, '--to sidecar-inbound --namespace app'],
  ['another waypoint', waypoint, '--to waypoint --namespace app --gateway other'],
  ['a gateway, on a sidecar', client, '--to gateway --mesh'],
  ['a gateway, on a waypoint', waypoint, '--to gateway --mesh'],
])('attached to %s', (_, proxy, command) => {
  it('lands nowhere', (context) => {
    const { listeners, clusters } = generated(context, proxy, command);
    expect(attachedChains(listeners)).toEqual([]);
    expect(clusters.map(({ name }) => name)).not.toContain('sidelight');
  });
});

describe("the mesh's own cluster", () => {
  const name = 'outbound|50051||sidelight.sidelight.svc.cluster.local';
  const service = '--service sidelight.sidelight';

  function ownCluster(context: TestContext, proxy: FactsOptions, command: string) {
    return generated(context, proxy, `${command} ${service}`).clusters.filter((cluster) => cluster['name'] === name);
  }

  describe.each<[string, FactsOptions, string]>([
    ['a sidecar', client, '--to sidecar-outbound --namespace app'],
    ['both sides of a sidecar', web, '--to sidecar-outbound --to sidecar-inbound --namespace app'],
    ['a gateway', gateway, '--to gateway --namespace app'],
  ])('of %s', (_, proxy, command) => {
    it('gets one health check, and keeps what it had', (context) => {
      const [cluster] = ownCluster(context, proxy, command);
      expect(cluster).toMatchObject({
        type: 'EDS',
        commonLbConfig: { healthyPanicThreshold: {} },
        transportSocketMatches: [{ name: 'hbone' }, { name: 'tlsMode-disabled' }],
      });
      expect(cluster?.['healthChecks']).toMatchObject([{ grpcHealthCheck: {}, interval: '4s' }]);
    });
  });

  it('is known to a waypoint by the annotation, and has no bounds there, as the output says', (context) => {
    const [cluster] = ownCluster(context, waypoint, '--to waypoint --namespace app');
    expect(cluster).toBeDefined();
    expect(cluster).not.toHaveProperty('healthChecks');
    const output = runAttach('--to', 'waypoint', '--namespace', 'app', '--profile', 'full', ...service.split(' '));
    expect(output).toContain('A Sidelight that hangs costs each request 200 ms for as long as it hangs');
  });

  it('is not known to a waypoint without it', (context) => {
    const yaml = runAttach('--to', 'waypoint', '--namespace', 'app', ...service.split(' '));
    const without = yaml.replace(/ {2}annotations:\n.*\n/, '');
    expect(without).not.toBe(yaml);
    const { clusters } = efcheckGenerates(context, cleanup, [...meshes.waypoint, without], waypoint);
    expect(clusters.map((cluster) => cluster['name'])).not.toContain(name);
  });
});
