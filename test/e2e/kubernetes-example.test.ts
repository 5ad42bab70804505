import { spawn } from 'node:child_process';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { parse } from 'yaml';
import { findEnvoy } from '../../setup/envoy.mjs';
import type { ConfigInput } from '../../src/config/schema.ts';
import { Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import { assignment, type Bootstrap } from '../../src/lab/envoy-config.ts';
import { startEnvoy } from '../../src/lab/envoy-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { oneOf, readManifests, readManifestText } from '../support/manifests.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* The example of docs/kubernetes.md on this machine: its app, its Envoys and its configs, on ports that are free here. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

/** The command of the example's app, on another port. */
async function startApp(): Promise<number> {
  const port = await freePort();
  const [app] = oneOf(readManifests('example/shop.yaml'), 'Deployment').spec.template.spec.containers;
  const [, ...args] = (app?.['command'] ?? []) as string[];
  // The clone's Python stands for the image's.
  const child = spawn(
    'python3',
    args.map((each) => each.replace('8080', String(port))),
    { stdio: 'ignore' },
  );
  dieWithUs(child);
  cleanup.defer(() => child.kill('SIGKILL'));
  const answers = () =>
    fetch(`http://127.0.0.1:${port}`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('the app', answers);
  return port;
}

async function startExampleEnvoy(file: string, ports: { sidelight: number; admin: number }): Promise<number> {
  const config = parse(readManifestText(file)) as Bootstrap;
  config['node'] = { id: 'shop-7d9f', cluster: 'shop' };
  config.admin.address.socket_address.port_value = ports.admin;
  for (const listener of config.static_resources.listeners) listener.address.socket_address.port_value = 0;
  const addresses: Record<string, string> = {
    app: `127.0.0.1:${await startApp()}`,
    sidelight: `127.0.0.1:${ports.sidelight}`,
  };
  for (const cluster of config.static_resources.clusters)
    cluster['load_assignment'] = assignment(cluster.name, [addresses[cluster.name] ?? '']);
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === 1);
  return envoy.port('http');
}

/** The config as it is mounted, but for what is listened on, where the state is, and the API server, which is not here. */
async function startSidelightWith(file: string, adminPort: number): Promise<TestSidelight> {
  const { listen: _, discovery, ...config } = parse(readManifestText(file)) as ConfigInput;
  const stateFile = path.join(cleanup.use(tempDir()).path, 'state.json');
  const admin = discovery?.envoyAdmin === undefined ? {} : { envoyAdmin: { urls: [`http://127.0.0.1:${adminPort}`] } };
  return cleanup.use(
    await startTestSidelight({
      ...config,
      discovery: { ...discovery, ...admin, stateFile, kubernetes: { enabled: false } },
    }),
  );
}

it.each([
  ['shared', 'base/sidelight.yaml', 'example/envoy.yaml', 'unknown', []],
  ['same-pod', 'components/same-pod/sidelight.yaml', 'overlays/same-pod/envoy.yaml', 'current', ['envoy']],
])('%s: a GET is ok, a POST fails, and the pin is as documented', async (_, config, envoy, pin, sources) => {
  const admin = await freePort();
  const sidelight = await startSidelightWith(config, admin);
  const port = await startExampleEnvoy(envoy, { sidelight: sidelight.grpcPort, admin });
  const send = async (method: string) => (await fetch(`http://127.0.0.1:${port}`, { method })).status;
  expect([await send('GET'), await send('POST')]).toEqual([200, 501]);

  const counted = async (outcome: string) =>
    sidelight.metric('sidelight_requests_total', { outcome, cluster: 'app', reporter_workload: 'shop' });
  await until('both requests', async () => (await counted('ok')) === 1 && (await counted('failed')) === 1);
  // The first request of a cluster may come before its list does.
  await until(`a pin that is ${pin}`, async () => {
    await send('POST');
    const { exchanges } = await sidelight.json<{ exchanges: { pin: string }[] }>('/api/v1/exchanges?outcome=failed');
    return exchanges.some((each) => each.pin === pin);
  });
  const clusters = await sidelight.json<{ clusters: { source: string }[] }>('/api/v1/clusters');
  expect(clusters.clusters.map(({ source }) => source)).toEqual(sources);
});
