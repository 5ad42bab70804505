import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { findEnvoy } from '../../setup/envoy.mjs';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { assignment, type Bootstrap } from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { runAttach } from '../support/attach.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { thisProgram } from '../support/this-program.ts';
import { until } from '../support/until.ts';

/* A user's own Envoy config with what `sidelight attach --to envoy` puts into it, on a real Envoy. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const plain = path.join(import.meta.dirname, '../fixtures/attach/plain.yaml');
const ips = ['127.0.0.11', '127.0.0.12'];

interface Scene {
  envoy: EnvoyProcess;
  sidelight: TestSidelight;
  client: ReturnType<typeof http1Client>;
}

/** Two upstreams of which the first always answers 503: a retry hides it. */
async function startScene(grpc: string, where: (port: number) => string[], ...flags: string[]): Promise<Scene> {
  const sidelight = cleanup.use(await startTestSidelight({ listen: { grpc } }));
  const port = await freePort(ips);
  cleanup.use(
    await Upstreams.start({ ips, port, handler: ({ ip }) => ({ kind: 'respond', status: ip === ips[0] ? 503 : 200 }) }),
  );
  const text = runAttach('--to', 'envoy', '--config', plain, ...where(sidelight.grpcPort), ...flags);
  const config = parse(text) as Bootstrap;
  const app = config.static_resources.clusters.find(({ name }) => name === 'app');
  if (app)
    app['load_assignment'] = assignment(
      'app',
      ips.map((ip) => `${ip}:${port}`),
    );
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  return { envoy, sidelight, client: cleanup.use(http1Client(envoy.port('http'))) };
}

const byAddress = (port: number) => ['--address', `127.0.0.1:${port}`];

describe("a user's own config", () => {
  it('reports masked failures and tags, over a unix socket too', async () => {
    const socket = path.join(cleanup.use(tempDir()).path, 'grpc.sock');
    const { client, sidelight } = await startScene(
      `unix:${socket}`,
      () => ['--uds', socket],
      '--profile',
      'full',
      '--message-timeout',
      '1s',
    );
    for (let sent = 0; sent < 20; sent += 1) expect((await client.request('/')).status).toBe(200);
    await until(
      'masked exchanges',
      async () => (await sidelight.metric('sidelight_requests_total', { outcome: 'masked' })) > 0,
    );
    expect(await sidelight.metric('sidelight_self_tag_duration_seconds_count')).toBe(20);
  });
});

describe('a share', () => {
  it('is tagged, and all is logged', async () => {
    const flags = ['--profile', 'full', '--sample', '50%', '--message-timeout', '1s'];
    const { client, sidelight } = await startScene('127.0.0.1:0', byAddress, ...flags);
    for (let sent = 0; sent < 200; sent += 1) expect((await client.request('/')).status).toBe(200);
    await until('all of them', async () => (await sidelight.metric('sidelight_requests_total')) === 200);
    const tagged = await sidelight.metric('sidelight_self_tag_duration_seconds_count');
    // Six standard deviations of 200 coins.
    expect(tagged).toBeGreaterThan(57);
    expect(tagged).toBeLessThan(143);
  });
});

describe('the kill switch', () => {
  it('ends ext_proc streams and log entries under traffic, with no push, and changes no response', async () => {
    const flags = ['--profile', 'full', '--sample', '100%'];
    const { envoy, client, sidelight } = await startScene('127.0.0.1:0', byAddress, ...flags);
    const answers: (number | undefined)[] = [];
    const ended = new AbortController();
    const load = (async () => {
      while (!ended.signal.aborted) answers.push((await client.request('/')).status);
    })();
    const streams = () => envoy.admin.stat('http.http.ext_proc.sidelight.streams_started');
    await until('streams', async () => (await sidelight.metric('sidelight_self_tag_duration_seconds_count')) > 20);

    await envoy.admin.setRuntime({ 'sidelight.tag_percent': '0', 'sidelight.log_percent': '0' });
    await sleep(100);
    const [started, sent] = [await streams(), answers.length];
    await sleep(1000);
    expect(answers.length).toBeGreaterThan(sent + 10);
    expect(await streams()).toBe(started);

    // What was sent before is told; then nothing more.
    await sleep(2000);
    const told = await sidelight.metric('sidelight_requests_total');
    await sleep(1000);
    expect(await sidelight.metric('sidelight_requests_total')).toBe(told);

    await envoy.admin.setRuntime({ 'sidelight.tag_percent': '100', 'sidelight.log_percent': '100' });
    await until('streams again', async () => (await streams()) > started);
    ended.abort();
    await load;
    expect(new Set(answers)).toEqual(new Set([200]));
  });
});

describe('a Sidelight that hangs', () => {
  it('is out after one check that failed, where many proxies check it seldom', async () => {
    const grpcPort = await freePort();
    const listen = { grpc: `127.0.0.1:${grpcPort}`, http: '127.0.0.1:0' };
    const sidelight = cleanup.use(await startSidelight(thisProgram(), { listen }));
    // One check in 6 s: two of them alone would take 12.
    const flags = ['--proxies', '1500', ...byAddress(grpcPort)];
    const config = parse(runAttach('--to', 'envoy', '--config', plain, ...flags)) as Bootstrap;
    const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
    const healthy = 'cluster.sidelight.membership_healthy';
    await envoy.admin.waitForStat(healthy, (hosts) => hosts === 1);

    process.kill(sidelight.pid, 'SIGSTOP');
    await envoy.admin.waitForStat(healthy, (hosts) => hosts === 0, 10_000);
    process.kill(sidelight.pid, 'SIGCONT');
    expect(await envoy.admin.waitForStat(healthy, (hosts) => hosts === 1, 15_000)).toBe(1);
  });
});
