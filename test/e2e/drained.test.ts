import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import type { ConfigInput } from '../../src/config/schema.ts';
import { Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import { commonHttpOptions, dnsCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { assignment, labConfig } from '../../src/lab/envoy-config.ts';
import { startEnvoy } from '../../src/lab/envoy-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { startTcpEcho, type TcpEcho } from '../../src/lab/tcp-echo.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { asksFor, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { parsePrometheusText, total } from '../support/prometheus-text.ts';
import { pinsOf, routeTo, startReporter } from '../support/reporting.ts';
import { runDrained } from '../support/run-drained.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { keepTalking } from '../support/talking.ts';
import { thisProgram } from '../support/this-program.ts';
import { until } from '../support/until.ts';

/* `sidelight drained` after a name moved, on a real Envoy. Long waits are scaled down. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const graceMs = 500;
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

async function startDns(name: string) {
  const dns = cleanup.use(await DnsServer.start());
  const answer = (address: string) =>
    dns.set(`${name}.test`, { kind: 'addresses', addresses: [address], ttlSeconds: 1 });
  answer(oldIp);
  return { dns, answer };
}

async function startService(input: ConfigInput): Promise<TestSidelight> {
  return cleanup.use(await startTestSidelight(input));
}

const drained = (of: TestSidelight | readonly TestSidelight[], flags: Parameters<typeof runDrained>[1] = {}) =>
  runDrained(
    [of].flat().map(({ httpUrl }) => ({ url: httpUrl })),
    { target: oldIp, ...flags, flags: { quietFor: '2s', timeout: '30s', ...flags.flags } },
  );

async function startEchoes(): Promise<TcpEcho> {
  const old = cleanup.use(await startTcpEcho(oldIp));
  cleanup.use(await startTcpEcho(newIp, old.port));
  return old;
}

const tcpCluster = (dns: DnsServer, port: number) =>
  dnsCluster({ name: 'tcp-app', kind: 'STRICT_DNS', host: 'tcp-app.test', port, dnsPort: dns.port });

/** A replica has heard of the cluster, and its source of the old address. */
const listed = (sidelight: TestSidelight, cluster: string) =>
  until('the view', async () => (await sidelight.metric('sidelight_endpoint_listed', { cluster })) === 1);

/** Bytes that went to an endpoint that had left, as a replica knows them. */
const pinned = (sidelight: TestSidelight, cluster: string) =>
  until('bytes after it left', async () => (await sidelight.metric('sidelight_pin_bytes_total', { cluster })) > 0);

it('in a script: waits while a kept-alive TCP client stays on the old address, and goes on when it has left', async () => {
  const { dns, answer } = await startDns('tcp-app');
  const sidelight = await startService(asksFor(['tcp-app'], dns, graceMs));
  const old = await startEchoes();
  const envoy = await startReporter(cleanup, 'drained-tcp', {
    sidelightPort: sidelight.grpcPort,
    clusters: [tcpCluster(dns, old.port)],
    tcpLogFlushMs: 200,
  });
  const client = await keepTalking(cleanup, envoy);
  await listed(sidelight, 'tcp-app');
  answer(newIp);
  await pinned(sidelight, 'tcp-app');

  const command = `"${process.execPath}" "${main}" drained ${oldIp}:${old.port} --from ${sidelight.httpUrl} --quiet-for 2s --timeout 40s`;
  const shell = spawn('sh', ['-c', `${command} && echo may be shut down`], { stdio: ['ignore', 'pipe', 'pipe'] });
  dieWithUs(shell);
  cleanup.defer(() => shell.kill('SIGKILL'));
  const said = { out: '', err: '' };
  shell.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()));
  shell.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()));
  const ended = once(shell, 'close');
  await until('progress', () => said.err.includes('in use: 1 connection open'));
  await sleep(2500);
  expect(shell.exitCode).toBeNull();
  const leftAtMs = Date.now();
  await client.close();
  expect(await ended).toEqual([0, null]);
  expect(Date.now() - leftAtMs).toBeGreaterThan(1500);
  expect(said.out).toMatch(/^drained: 127\.0\.0\.11:\d+ has been quiet for [23]/);
  expect(said.out).toMatch(/\nmay be shut down\n$/);
});

it('a LOGICAL_DNS pool keeps an idle connection: 4 while it may be open, 0 once its idle timeout is over', async () => {
  const { dns } = await startDns('pool');
  const idleTimeoutMs = 8000;
  const { clusters = [], ...config } = asksFor(['pool'], dns, graceMs);
  const sidelight = await startService({ ...config, clusters: clusters.map((one) => ({ ...one, idleTimeoutMs })) });
  const extra = commonHttpOptions({ idle_timeout: `${idleTimeoutMs / 1000}s` });
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'pool', kind: 'LOGICAL_DNS', extra });
  const { stop } = await move.traffic();
  move.answer(newIp);
  await until('a stale pin', async () => (await move.connections('stale')) > 0);
  await stop();
  const stoppedMs = Date.now();

  const early = await drained(sidelight, { flags: { timeout: '4s' } });
  expect(early.out).toMatch(/^quiet: 127\.0\.0\.11 has been quiet for .*, but 2 connections may be open for [3-6]/);
  expect(early.out).toContain('why: pool_kept (pool)');
  expect(early.code).toBe(4);

  const late = await drained(sidelight);
  expect([late.code, late.out.split('\n')[0]]).toEqual([0, expect.stringContaining('drained: 127.0.0.11')]);
  expect(Date.now() - stoppedMs).toBeGreaterThan(idleTimeoutMs - 1000);
  await until('the pool to be empty', () => move.upstreams.openConnections(oldIp) === 0, 5000);
});

it('a response that runs since before the flip is in use until its end', async () => {
  const { dns } = await startDns('long');
  const { clusters = [], ...config } = asksFor(['long'], dns, graceMs);
  const idleTimeoutMs = 3000;
  const sidelight = await startService({ ...config, clusters: clusters.map((one) => ({ ...one, idleTimeoutMs })) });
  const extra = commonHttpOptions({ idle_timeout: `${idleTimeoutMs / 1000}s` });
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'long', extra });
  const { stop } = await move.traffic();
  const client = http1Client(move.envoy.port('http'));
  cleanup.defer(() => client.close());
  let endedMs = 0;
  const runLong = async () => {
    await client.request('/trickle/9000');
    endedMs = Date.now();
  };
  const long = runLong();
  await stop();
  move.answer(newIp);
  // Longer than Envoy takes to tell of a request that runs.
  const { code, err } = await drained(sidelight, { flags: { quietFor: '6500ms', timeout: '40s' } });
  expect([code, endedMs > 0]).toEqual([0, true]);
  expect(Date.now() - endedMs).toBeGreaterThan(6000);
  expect(err.join()).toContain('in use: 1 connection open');
  await long;
});

it('the recorder got nothing: 3', async () => {
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  writeFileSync(file, `clusters: { app: ["${oldIp}:80", "${newIp}:80"] }`);
  const sidelight = await startService({ discovery: { file } });
  writeFileSync(file, `clusters: { app: ["${newIp}:80"] }`);
  await until('the change', () => sidelight.log.some(({ event }) => event === 'discovery.changed'));
  const { code, out } = await drained(sidelight);
  expect([code, out]).toEqual([3, expect.stringContaining('no proxy has a log stream open: nothing is recorded')]);
  expect(out).toContain(`app ${oldIp}:80: left `);
});

it('the one reporter that used the old address has gone silent: 3, unless it is known to be gone', async () => {
  const { dns } = await startDns('silent');
  const sidelight = await startService(asksFor(['silent', 'other'], dns, graceMs));
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'silent', kind: 'LOGICAL_DNS' });
  const { stop } = await move.traffic();
  dns.set('other.test', { kind: 'addresses', addresses: [newIp], ttlSeconds: 1 });
  const other = await setUpMove(cleanup, { dns, sidelight }, { name: 'other', ips: [oldIp, newIp] });
  other.answer(newIp);
  const { stop: stopOther } = await other.traffic();
  move.answer(newIp);
  await until('a stale pin', async () => (await move.connections('stale')) > 0);
  await stop();
  await stopOther();
  await move.envoy.close();

  const endpoint = `${oldIp}:${move.upstreams.port}`;
  const silent = await drained(sidelight, { target: endpoint });
  expect([silent.code, silent.out]).toEqual([3, expect.stringContaining('silent used it and has no log stream open')]);
  const ignored = await drained(sidelight, { target: endpoint, flags: { ignoreReporter: ['silent'] } });
  expect([ignored.code, ignored.out]).toEqual([0, expect.stringContaining('taken as gone: silent')]);
});

it('two replicas, and a log stream that moves between them each second: counted once, lost never, and its end is believed', async () => {
  const { dns, answer } = await startDns('tcp-app');
  const input: ConfigInput = { ...asksFor(['tcp-app'], dns, graceMs), join: { streamMaxAgeMs: 1000 } };
  const replicas = [await startService(input), await startService(input)];
  const old = await startEchoes();
  const envoy = await startReporterOfTwo('drained-two', replicas, dns, old.port);
  const client = await keepTalking(cleanup, envoy);
  for (const replica of replicas) await listed(replica, 'tcp-app');
  answer(newIp);
  for (const replica of replicas) await pinned(replica, 'tcp-app');

  const seen = await drained(replicas, { target: `${oldIp}:${old.port}`, flags: { timeout: '4s', json: true } });
  const { connections } = JSON.parse(seen.out) as { connections: { state: string; bytes: number }[] };
  expect([seen.code, connections.map(({ state }) => state)]).toEqual([1, ['open']]);
  // Both ways, and as far as Envoy had told.
  expect(connections[0]?.bytes).toBeLessThanOrEqual(2 * old.bytes());

  await client.close();
  const { code, out } = await drained(replicas, { target: 'tcp-app.test' });
  expect([code, out.split('\n')[0]]).toEqual([0, expect.stringContaining('drained: tcp-app.test has been quiet')]);
});

it('restarted in mid cut-over without a state file: never 0, for a connection of before may be there', async () => {
  const { dns } = await startDns('restart');
  const program = thisProgram();
  const first = await startSidelight(program, asksFor(['restart'], dns, graceMs));
  cleanup.defer(() => first.close());
  const metric = async (name: string, labels: Record<string, string> = {}) => {
    const prefixed = Object.entries(labels).map(([key, value]) => [`sidelight_${key}`, value]);
    return total(parsePrometheusText(await first.get('/metrics')), name, Object.fromEntries(prefixed));
  };
  const sidelight = { grpcPort: first.grpcPort, metric };
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'restart', kind: 'LOGICAL_DNS' });
  const { stop } = await move.traffic();
  move.answer(newIp);
  await until('a stale pin', async () => (await move.connections('stale')) > 0);
  await stop();
  await first.close();
  const listen = { grpc: `127.0.0.1:${first.grpcPort}`, http: '127.0.0.1:0' };
  const next = await startSidelight(program, { ...asksFor(['restart'], dns, graceMs), listen });
  cleanup.defer(() => next.close());

  expect(move.upstreams.openConnections(oldIp)).toBeGreaterThan(0);
  const idle = await runDrained([{ url: next.httpUrl }], { target: oldIp, flags: { quietFor: '1s', timeout: '10s' } });
  expect([idle.code, idle.out]).toEqual([3, expect.stringContaining('never listed and never used')]);

  // A request that shows one of them does not show the other.
  const client = http1Client(move.envoy.port('http'));
  cleanup.defer(() => client.close());
  expect((await client.request('/')).status).toBe(200);
  const pins = async () => (await next.pins()).pins.length;
  await until('the use', async () => (await pins()) > 0);
  const used = await runDrained([{ url: next.httpUrl }], { target: oldIp, flags: { quietFor: '1s', timeout: '10s' } });
  expect([used.code, used.out]).toEqual([3, expect.stringContaining('it began after the endpoint left')]);
});

async function startReporterOfTwo(name: string, replicas: readonly TestSidelight[], dns: DnsServer, port: number) {
  const ports = replicas.map(({ grpcPort }) => `127.0.0.1:${grpcPort}`);
  const config = labConfig({
    base: 'observe',
    sidelightPort: replicas[0]?.grpcPort ?? 0,
    clusters: [tcpCluster(dns, port)],
    tcpLogFlushMs: 200,
  });
  const ours = config.static_resources.clusters.find((cluster) => cluster.name === 'sidelight');
  Object.assign(ours ?? {}, { load_assignment: assignment('sidelight', ports) });
  config['node'] = { id: name, cluster: name };
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === 2);
  return envoy;
}

it("exits 0 at once where Envoy's own counters prove that its idle pool is closed", async () => {
  const { dns, answer } = await startDns('pool');
  const adminPort = await freePort();
  const { clusters, discovery } = asksFor(['pool'], dns, graceMs);
  const envoyAdmin = { urls: [`http://127.0.0.1:${adminPort}`], refreshMs: 500, timeoutMs: 400 };
  const sidelight = await startService({ clusters: clusters ?? [], discovery: { ...discovery, envoyAdmin } });
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp, newIp] }));
  const cluster = dnsCluster({
    name: 'pool',
    kind: 'STRICT_DNS',
    host: 'pool.test',
    port: upstreams.port,
    dnsPort: dns.port,
  });
  const config = labConfig({
    base: 'observe',
    sidelightPort: sidelight.grpcPort,
    clusters: [cluster],
    routes: [routeTo('pool')],
  });
  config.admin.address.socket_address.port_value = adminPort;
  config['node'] = { id: 'drained-pool', cluster: 'drained-pool' };
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config, concurrency: 1 }));
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === 1);
  const client = http1Client(envoy.port('http'));
  cleanup.defer(() => client.close());
  await client.request('/');
  await listed(sidelight, 'pool');
  answer(newIp);
  const { code, out } = await drained(sidelight);
  expect(out).toMatch(/^drained: /);
  expect(code).toBe(0);
  const { cleared } = await pinsOf(sidelight, 'pool');
  expect(cleared.map(({ how, endpoint }) => [how, endpoint])).toEqual([['gone', `${oldIp}:${upstreams.port}`]]);
});
