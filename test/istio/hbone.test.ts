import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, type TestContext } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.ts';
import type { RecentExchange } from '../../src/emit/recent.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tcpClient } from '../../src/lab/tcp-client.ts';
import { startTcpEcho } from '../../src/lab/tcp-echo.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { attachedInMesh } from '../support/attach.ts';
import { freeNet, istioPorts, startIstioWaypoint } from '../support/istio.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* What a waypoint's Envoy really says of an endpoint that it reaches by HBONE, and what Sidelight makes of it. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const cluster = 'inbound-vip|8080|http|web.app.svc.cluster.local';

async function start(context: TestContext, net: string, config: ConfigInput) {
  const ips = [11, 12, 13].map((last) => `${net}.${last}`);
  const web = cleanup.use(await Upstreams.start({ ips, port: istioPorts.endpoint }));
  const sidelight = cleanup.use(await startTestSidelight(config));
  const yaml = [attachedInMesh('--to waypoint')];
  const waypoint = await startIstioWaypoint(context, cleanup, { net, sidelightPort: sidelight.grpcPort, yaml });
  return { web, sidelight, client: await waypoint.client() };
}

interface PinRow {
  endpoint: string;
  pin: string;
  connectionId: string;
  openedMs: number;
  requests: number;
}

it('a tunnel is one connection of the endpoint, with its own id and age: its pin is true', async (context) => {
  const net = await freeNet();
  const [tunnelled, ...others] = [11, 12, 13].map((last) => `${net}.${last}:${istioPorts.endpoint}`);
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  // JSON is YAML.
  const list = (endpoints: unknown) => writeFileSync(file, JSON.stringify({ clusters: { [cluster]: endpoints } }));
  list([tunnelled, ...others]);
  const config = { discovery: { file }, clusters: [{ match: cluster, graceMs: 0 }] };
  const { web, sidelight, client } = await start(context, net, config);
  const pinOf = async () => {
    const { pins } = await sidelight.json<{ pins: PinRow[] }>('/api/v1/pins');
    return pins.find(({ endpoint }) => endpoint === `envoy://connect_originate/${tunnelled}`);
  };
  await until('the tunnel', async () => {
    expect((await client.request('/')).status).toBe(200);
    return (await pinOf()) !== undefined;
  });
  const before = await pinOf();
  expect(before).toMatchObject({ pin: 'current', connectionId: expect.any(String) as string });
  // A connection opened closer to the leaving than the clocks' uncertainty could as well have been opened after it.
  await sleep(2500);
  list(others);
  await until('the pin to be stale', async () => {
    await client.request('/');
    return (await pinOf())?.pin === 'stale';
  });
  const after = await pinOf();
  expect(after?.connectionId).toBe(before?.connectionId);
  expect(Math.abs((after?.openedMs ?? 0) - (before?.openedMs ?? 0))).toBeLessThan(1000);
  expect(after?.requests).toBeGreaterThan(before?.requests ?? 0);
  // To the server, too, it was one connection all the time.
  expect(web.connections(`${net}.11`)).toBe(1);
});

it('a connect that is refused behind the tunnel has no cause and no connection', async (context) => {
  const net = await freeNet();
  const { web, sidelight, client } = await start(context, net, {});
  await web.down(`${net}.11`);
  const failed = async () =>
    (await sidelight.json<{ exchanges: RecentExchange[] }>('/api/v1/exchanges?outcome=failed')).exchanges[0];
  await until('a failure', async () => {
    await client.request('/');
    return (await failed()) !== undefined;
  });
  // Envoy logs UC, and a connection that is some µs old: the one to its own internal listener.
  expect(await failed()).toMatchObject({
    cluster,
    reporterKind: 'waypoint',
    code: 503,
    flags: ['UC'],
    cause: 'unknown',
    pin: 'unknown',
    attempts: [{ endpoint: `envoy://connect_originate/${net}.11:${istioPorts.endpoint}`, cause: 'unknown' }],
  });
  const [attempt] = (await failed())?.attempts ?? [];
  expect(attempt).not.toHaveProperty('connectionId');
  expect(attempt).not.toHaveProperty('connectionAgeMs');
  const { pins } = await sidelight.json<{ pins: PinRow[] }>('/api/v1/pins');
  expect(pins.filter(({ endpoint }) => endpoint.startsWith('envoy://'))).toEqual([]);
});

it('over TCP, too, a connect that is refused behind the tunnel is no success and has no cause', async (context) => {
  const net = await freeNet();
  const sidelight = cleanup.use(await startTestSidelight());
  const yaml = ['tcp.yaml', attachedInMesh('--to waypoint')];
  const waypoint = await startIstioWaypoint(context, cleanup, { net, sidelightPort: sidelight.grpcPort, yaml });
  const port = await waypoint.tunnelTo('10.2.0.11:5432');
  const ended = async (how: Record<string, string> = {}) => {
    const labels = { cluster: 'inbound-vip|5432|tcp|db.app.svc.cluster.local', reporter_kind: 'waypoint', ...how };
    return sidelight.metric('sidelight_tcp_connections_total', labels);
  };
  // Envoy 1.40 logs UR, 1.37 and 1.38 an orderly end.
  const untold = async () =>
    (await ended({ result: 'failed', cause: 'unknown' })) + (await ended({ result: 'unknown' }));

  await tcpClient(port).then((client) => client.exchange('hello').catch(() => client.close()));
  await until('the first end', async () => (await ended()) === 1);
  expect(await untold()).toBe(1);

  const database = cleanup.use(await startTcpEcho(`${net}.11`, istioPorts.endpoint));
  const client = cleanup.use(await tcpClient(port));
  expect(await client.exchange('hello')).toBe('hello');
  database.cycle();
  await until('the end of one that was answered', async () => (await ended()) === 2);
  // How the stand-in for ztunnel ends its side, in order or not, is no matter here.
  expect(await untold()).toBe(1);
});
