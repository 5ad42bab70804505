import { findEnvoy } from '../../setup/envoy.mjs';
import type { ApiPin } from '../../src/cli/demo/sidelight-process.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { type Json, type LabConfigOptions, labConfig } from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { drive, type LoadClient } from '../../src/lab/load.ts';
import type { TestSidelight } from './sidelight.ts';

/** As Envoy up to 1.38, and so Istio 1.30, behaves: LOGICAL_DNS keeps its connections after a flip. */
export const oldDns = { 'envoy.reloadable_features.enable_new_dns_implementation': false };

/** The one route of a test: everything goes to `cluster`, retried as `retry_policy` says, or never. */
export function routeTo(cluster: string, retry_policy?: Json, more: Json = {}): Json {
  return { match: { prefix: '/' }, route: { cluster, ...(retry_policy ? { retry_policy } : {}), ...more } };
}

/** A real Envoy whose node and workload are `name`; ready when it has found the service healthy. */
export async function startReporter(
  cleanup: Cleanup,
  name: string,
  options: Omit<LabConfigOptions, 'base'> & { base?: LabConfigOptions['base']; concurrency?: number },
): Promise<EnvoyProcess> {
  const { concurrency = 1, ...lab } = options;
  const config = labConfig({ base: 'observe', ...lab });
  config['node'] = { id: name, cluster: name };
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config, concurrency }));
  // Before its first health check Envoy has no service to log to.
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === 1);
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

export type SeenPin = ApiPin & { reason?: string; bytes: number; requests: number };

interface PinsAnswer {
  pins: SeenPin[];
  cleared: (SeenPin & { clearedMs: number; how: string })[];
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

/** Runs with a clean-up of its own, so that tests may run side by side. */
export const cleaned = (play: (cleanup: Cleanup) => Promise<void>) => async (): Promise<void> => {
  const cleanup = new Cleanup();
  try {
    await play(cleanup);
  } finally {
    await cleanup.run();
  }
};
