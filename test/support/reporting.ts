import { findEnvoy } from '../../setup/envoy.mjs';
import type { ApiCluster, ApiPin } from '../../src/cli/demo/sidelight-process.ts';
import type { Flip } from '../../src/endpoints/flips.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { assignment, type Json, type LabConfigOptions, labConfig } from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { drive, type LoadClient } from '../../src/lab/load.ts';
import type { LogFields } from '../../src/lib/logger.ts';
import type { Advice } from '../../src/model/advice.ts';
import type { EndpointReport, EndpointsAnswer } from '../../src/model/endpoint-report.ts';
import type { TestSidelight } from './sidelight.ts';

/** Whether Envoy's DNS clusters are of its newer kind: with the older, LOGICAL_DNS keeps its connections after a flip. */
export function newDns(isOn: boolean): Json {
  return { 'envoy.reloadable_features.enable_new_dns_implementation': isOn };
}

/** As Envoy up to 1.38, and so Istio 1.30, behaves. */
export const oldDns = newDns(false);

/** The one route of a test: everything goes to `cluster`, retried as `retry_policy` says, or never. */
export function routeTo(cluster: string, retry_policy?: Json, more: Json = {}): Json {
  return { match: { prefix: '/' }, route: { cluster, ...(retry_policy ? { retry_policy } : {}), ...more } };
}

export interface ReporterOptions extends Omit<LabConfigOptions, 'base'> {
  base?: LabConfigOptions['base'];
  concurrency?: number;
  /** Of its admin interface; absent: one that the kernel chooses. */
  adminPort?: number;
  /** Further replicas of the service, by their gRPC ports. */
  replicas?: readonly number[];
}

/** A real Envoy whose node and workload are `name`; ready when it has found the service healthy. */
export async function startReporter(cleanup: Cleanup, name: string, options: ReporterOptions): Promise<EnvoyProcess> {
  const { concurrency = 1, adminPort = 0, replicas = [], ...lab } = options;
  const config = labConfig({ base: 'observe', ...lab });
  config['node'] = { id: name, cluster: name };
  config.admin.address.socket_address.port_value = adminPort;
  const services = [lab.sidelightPort, ...replicas].map((port) => `127.0.0.1:${port}`);
  for (const cluster of config.static_resources.clusters)
    if (cluster.name === 'sidelight') cluster['load_assignment'] = assignment('sidelight', services);
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config, concurrency }));
  // Before its first health check Envoy has no service to log to.
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === services.length);
  return envoy;
}

interface Traffic {
  client: LoadClient;
  /** Requests that were not a whole response below 500. */
  failures: () => number;
  /** Resolves when what was in flight is done. May be called twice. */
  stop: () => Promise<void>;
}

/** Keeps sending to an Envoy until `stop`, or the end of the test. */
export function keepSending(
  cleanup: Cleanup,
  envoy: EnvoyProcess,
  options: { path?: string; concurrency?: number; pauseMs?: number } = {},
): Traffic {
  const { path = '/', concurrency = 2, pauseMs = 20 } = options;
  const client = http1Client(envoy.port('http'), concurrency);
  const ending = new AbortController();
  const done = drive(() => client.request(path), { concurrency, pauseMs, signal: ending.signal });
  const stop = async () => {
    ending.abort();
    await done;
    client.close();
  };
  cleanup.defer(stop);
  return { client, stop, failures: () => client.log.filter(({ ok }) => !ok).length };
}

export interface SeenPin extends Omit<ApiPin, 'advice'> {
  reason?: string;
  bytes: number;
  requests: number;
  advice?: Advice;
  contradiction?: string;
}

interface PinsAnswer {
  pins: SeenPin[];
  cleared: (SeenPin & { clearedMs: number; how: string; by?: string })[];
}

/** What `/api/v1/pins` says of one cluster. */
export async function pinsOf(
  sidelight: Pick<TestSidelight, 'json'>,
  cluster: string,
): Promise<{ pins: PinsAnswer['pins']; cleared: PinsAnswer['cleared'] }> {
  const { pins, cleared } = await sidelight.json<PinsAnswer>('/api/v1/pins');
  const own = (row: { cluster: string }) => row.cluster === cluster;
  return { pins: pins.filter(own), cleared: cleared.filter(own) };
}

/** What `/api/v1/endpoints` says of one endpoint of a cluster; absent: it does not know it. */
export async function endpointOf(
  sidelight: Pick<TestSidelight, 'json'>,
  cluster: string,
  endpoint: string,
): Promise<EndpointReport | undefined> {
  const { endpoints } = await sidelight.json<EndpointsAnswer>(
    `/api/v1/endpoints?cluster=${cluster}&endpoint=${endpoint}`,
  );
  return endpoints[0];
}

interface SeenCluster extends ApiCluster {
  graceMs: number;
  flips: Flip[];
  proxies: {
    nodeId: string;
    type?: string;
    newDnsImplementation?: boolean;
    hosts: { endpoint: string; healthy: boolean; pendingRemoval: boolean; activeConnections?: number }[];
  }[];
}

/** What `/api/v1/clusters` says of one cluster; throws when it does not know it. */
export async function clusterOf(sidelight: Pick<TestSidelight, 'json'>, cluster: string): Promise<SeenCluster> {
  const { clusters } = await sidelight.json<{ clusters: SeenCluster[] }>('/api/v1/clusters');
  const found = clusters.find((row) => row.cluster === cluster);
  if (found === undefined) throw new Error(`no cluster ${cluster}`);
  return found;
}

/** What was logged of one cluster under this name, oldest first. */
export function eventsOf({ log }: Pick<TestSidelight, 'log'>, name: string, cluster: string): LogFields[] {
  return log.filter(({ event, fields }) => event === name && fields['cluster'] === cluster).map(({ fields }) => fields);
}

/** Runs with a clean-up of its own, so that tests may run side by side. */
export const cleaned = (play: (cleanup: Cleanup) => Promise<void>) => async (): Promise<void> => {
  const cleanup = new Cleanup();
  try {
    await play(cleanup);
  } finally {
    await cleanup.run();
  }
};
