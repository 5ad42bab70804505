import { setTimeout as sleep } from 'node:timers/promises';
import { behaviourFromPath, type Handler } from '../../lab/behaviour.ts';
import { startBlackhole } from '../../lab/blackhole.ts';
import type { Cleanup } from '../../lab/cleanup.ts';
import { commonHttpOptions, dnsCluster, staticCluster } from '../../lab/clusters.ts';
import { DnsServer } from '../../lab/dns-server.ts';
import { type Json, labConfig } from '../../lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../lab/envoy-process.ts';
import { istioRetries, manyRetries } from '../../lab/istio-defaults.ts';
import { Upstreams } from '../../lab/upstreams.ts';
import { type Program, type SidelightProcess, startSidelight } from './sidelight-process.ts';

/** All that the scenarios play on: one real Envoy with `envoy/full.yaml`, three upstreams, a DNS server, Sidelight. */
export interface Stage {
  envoy: EnvoyProcess;
  sidelight: SidelightProcess;
  dns: DnsServer;
  upstreams: Upstreams;
  /** Envoy's HTTP port. */
  port: number;
}

/** How long after it left an endpoint is only draining, in the demo. */
export const graceMs = 2000;
/** After which Envoy closes an idle upstream connection, in the demo: an hour, its default, is too long to watch. */
const idleTimeoutMs = 3000;
export const oldIp = '127.0.0.11';
export const newIp = '127.0.0.12';
const thirdIp = '127.0.0.13';
/** Name of the demo's Envoy, and so of the service in Jaeger. */
export const demoWorkload = 'sidelight-demo';

const route = (name: string, cluster: string, retry?: Json): Json => ({
  name,
  match: { prefix: `/${name}` },
  route: { cluster, ...(retry ? { retry_policy: retry } : {}) },
});

/** Sets the stage; `cleanup` takes it down again. */
export async function setStage(
  options: { envoyBin: string; program: Program; otlpEndpoint: string | undefined },
  cleanup: Cleanup,
): Promise<Stage> {
  const dns = cleanup.use(await DnsServer.start());
  for (const name of ['a1', 'a3']) dns.set(hostOf(name), { kind: 'addresses', addresses: [oldIp], ttlSeconds: 1 });
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp, newIp, thirdIp] }));
  const dead = cleanup.use(await startBlackhole(thirdIp));
  const sidelight = cleanup.use(
    await startSidelight(options.program, {
      clusters: ['a1', 'a3'].map((match) => ({ match, host: hostOf(match), graceMs, idleTimeoutMs })),
      discovery: { dns: { servers: [`127.0.0.1:${dns.port}`], sameResolverAsProxy: true, refreshMs: 500 } },
      join: { lingerMs: 1001 },
      pins: { quietMs: 2000 },
      traces: { rootSampleRatio: 1 },
      ...(options.otlpEndpoint === undefined ? {} : { otlp: { endpoint: options.otlpEndpoint } }),
    }),
  );
  const extra = commonHttpOptions({ idle_timeout: `${idleTimeoutMs / 1000}s` });
  const shared = { port: upstreams.port, dnsPort: dns.port, extra };
  const config = labConfig({
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [
      ...['b1', 'b2'].map((name) =>
        staticCluster([`${dead.ip}:${dead.port}`, `${newIp}:${upstreams.port}`], {
          name,
          connectTimeoutMs: 250,
          extra: manyRetries,
        }),
      ),
      staticCluster(
        [oldIp, newIp].map((ip) => `${ip}:${upstreams.port}`),
        { name: 'al', extra: manyRetries },
      ),
      dnsCluster({ ...shared, name: 'a1', kind: 'STRICT_DNS', host: hostOf('a1') }),
      dnsCluster({ ...shared, name: 'a3', kind: 'LOGICAL_DNS', host: hostOf('a3') }),
    ],
    routes: [
      route('b1', 'b1', istioRetries),
      route('b2', 'b2'),
      route('a1', 'a1'),
      route('a3', 'a3'),
      route('al', 'al', { ...istioRetries, retry_on: '5xx' }),
    ],
    // As Envoy up to 1.38, and so Istio 1.30, behaves: LOGICAL_DNS keeps its connections after a flip.
    runtime: { 'envoy.reloadable_features.enable_new_dns_implementation': false },
  });
  config['node'] = { id: 'demo', cluster: demoWorkload };
  const envoy = cleanup.use(await startEnvoy({ bin: options.envoyBin, config }));
  const healthy = async () => (await envoy.admin.stat('cluster.sidelight.membership_healthy')) === 1;
  await untilTrue('Envoy to find Sidelight healthy', healthy);
  return { envoy, sidelight, dns, upstreams, port: envoy.port('http') };
}

/** The name that a cluster of the demo asks for. */
export function hostOf(cluster: string): string {
  return `${cluster}.demo.test`;
}

/** Lets the old server answer the requests of cluster `al` with 503, or as it did before. */
export function makeFaulty({ upstreams }: Stage, faulty: boolean): void {
  const broken: Handler = (request) =>
    request.path.startsWith('/al') ? { kind: 'respond', status: 503 } : behaviourFromPath(request);
  upstreams.handle(faulty ? broken : behaviourFromPath, oldIp);
}

/** Looks again until it holds. Throws after `patienceMs` with what was waited for. */
export async function untilTrue(
  what: string,
  holds: () => Promise<boolean> | boolean,
  patienceMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs / 1000} s in vain for ${what}`);
    await sleep(50);
  }
}
