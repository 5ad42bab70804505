import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import type { ConfigInput } from '../../src/config/schema.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { answered, logClient } from '../support/log-client.ts';
import { asksFor, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { keepSending, pinsOf, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* What is not known is said to be unknown, with its reason; and what a file says. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const startDns = async () => cleanup.use(await DnsServer.start());
const startService = async (config: ConfigInput) => cleanup.use(await startTestSidelight(config));

it('Sidelight restarted in mid cut-over: the old connections are unknown, older_than_view, never stale or current', async () => {
  const dns = await startDns();
  const grpcPort = await freePort();
  const program = {
    node: process.execPath,
    flags: [],
    entry: fileURLToPath(new URL('../../src/main.ts', import.meta.url)),
  };
  const start = async () => {
    const listen = { grpc: `127.0.0.1:${grpcPort}`, http: '127.0.0.1:0' };
    const running = cleanup.use(
      await startSidelight(program, { ...asksFor(['restarted'], dns, 500), listen, join: { lingerMs: 1001 } }),
    );
    const json = async <T>(where: string) => JSON.parse(await running.get(where)) as T;
    return {
      ...running,
      json,
      metric: async (name: string, labels: Record<string, string> = {}) =>
        (await running.samples())
          .filter(
            (sample) =>
              sample.name === name &&
              Object.entries(labels).every(([key, value]) => sample.labels[`sidelight_${key}`] === value),
          )
          .reduce((sum, { value }) => sum + value, 0),
    };
  };
  const before = await start();
  const move = await setUpMove(cleanup, { dns, sidelight: before }, { name: 'restarted', kind: 'LOGICAL_DNS' });
  const { failures, stop } = await move.traffic();
  await before.close();
  move.answer(newIp);
  await sleep(1500);
  const after = await start();
  const requests = (pin: string) => after.metric('sidelight_pinned_requests_total', { cluster: 'restarted', pin });
  await until('requests over the old connections', async () => (await requests('unknown')) > 50);
  const { pins } = await pinsOf(after, 'restarted');
  expect(pins.map(({ pin, reason, endpoint }) => [pin, reason, endpoint.split(':')[0]])).toEqual([
    ['unknown', 'older_than_view', oldIp],
    ['unknown', 'older_than_view', oldIp],
  ]);
  move.upstreams.cycle(oldIp);
  await until('current requests on the new address', async () => (await requests('current')) > 0);
  await stop();
  expect([await requests('stale'), await requests('stale_view'), await requests('draining')]).toEqual([0, 0, 0]);
  expect(failures()).toBeLessThanOrEqual(2);
});

it('the name server is dead: unknown, source_stale after its time; the list is kept, never empty', async () => {
  const dns = await startDns();
  const config = asksFor(['dead-dns'], dns, 500);
  const sidelight = await startService({
    ...config,
    discovery: { dns: { ...config.discovery?.dns, staleAfterMs: 1500 } },
  });
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'dead-dns' });
  const { failures, stop } = await move.traffic();
  dns.set('dead-dns.test', { kind: 'drop' });
  await until('unknown connections', async () => (await move.connections('unknown')) > 0);
  const { pins } = await pinsOf(sidelight, 'dead-dns');
  expect(new Set(pins.map(({ pin, reason }) => `${pin} ${reason}`))).toEqual(new Set(['unknown source_stale']));
  const { clusters } = await sidelight.json<{ clusters: object[] }>('/api/v1/clusters');
  expect(clusters).toMatchObject([{ cluster: 'dead-dns', stale: true, listed: [{ endpoint: oldIp }], left: [] }]);
  expect(await sidelight.metric('sidelight_endpoint_listed', { cluster: 'dead-dns' })).toBe(1);
  expect(await sidelight.metric('sidelight_discovery_age_seconds', { cluster: 'dead-dns' })).toBeGreaterThan(1.4);
  move.answer(oldIp);
  await until('current connections', async () => (await move.connections('current')) > 0);
  await stop();
  expect(failures()).toBe(0);
});

it('the proxies may get other answers: unknown, other_resolver, whatever DNS says', async () => {
  const dns = await startDns();
  const config = asksFor(['other'], dns, 500);
  const sidelight = await startService({
    ...config,
    discovery: { dns: { ...config.discovery?.dns, sameResolverAsProxy: false } },
  });
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'other', kind: 'LOGICAL_DNS' });
  const { stop } = await move.traffic('unknown');
  move.answer(newIp);
  await until('the change', async () => (await move.changes()) === 2);
  await sleep(2000);
  await stop();
  const { pins } = await pinsOf(sidelight, 'other');
  expect(new Set(pins.map(({ pin, reason }) => `${pin} ${reason}`))).toEqual(new Set(['unknown other_resolver']));
  expect(await move.requests('unknown')).toBe(await move.requests());
});

it('a file: an address that is taken out is draining, then stale, though Envoy has a fixed list', async () => {
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  const write = (...ips: string[]) => {
    writeFileSync(`${file}.new`, `clusters:\n  filed: [${ips.join(', ')}]\n`);
    renameSync(`${file}.new`, file);
  };
  write(oldIp, newIp);
  const sidelight = await startService({ clusters: [{ match: 'filed', graceMs: 1000 }], discovery: { file } });
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp, newIp] }));
  const envoy = await startReporter(cleanup, 'filed', {
    sidelightPort: sidelight.grpcPort,
    clusters: [staticCluster(upstreams.addresses, { name: 'filed' })],
    routes: [routeTo('filed')],
  });
  const { failures, stop } = keepSending(cleanup, envoy);
  const connections = (pin: string) => sidelight.metric('sidelight_pins', { cluster: 'filed', pin });
  await until('current connections', async () => (await connections('current')) >= 2);
  write(newIp);
  await until('draining connections', async () => (await connections('draining')) > 0);
  expect(await connections('stale')).toBe(0);
  await until('stale connections', async () => (await connections('stale')) > 0);
  const { pins } = await pinsOf(sidelight, 'filed');
  for (const { pin, endpoint } of pins) expect(pin).toBe(endpoint.startsWith(oldIp) ? 'stale' : 'current');
  expect(pins[0]).toMatchObject({ source: 'file' });
  await stop();
  expect(failures()).toBe(0);
});

it.each([
  ['an hour ahead of ours', 3_600_000],
  ['an hour behind ours', -3_600_000],
])("an Envoy's clock is %s: the pins are right", async (_case, aheadMs) => {
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  writeFileSync(file, `clusters: { skewed: [${oldIp}, ${newIp}] }\n`);
  const sidelight = await startService({ clusters: [{ match: 'skewed', graceMs: 500 }], discovery: { file } });
  const envoy = cleanup.use(logClient(sidelight.grpcPort, 'skewed'));
  const stream = envoy.stream();
  const send = (key: string, ip: string, connectionId: string, ageMs: number) =>
    stream.entries(answered({ key, cluster: 'skewed', ip, connectionId, ageMs, startMs: Date.now() - 5 + aheadMs }));
  const requests = (pin: string) => sidelight.metric('sidelight_pinned_requests_total', { cluster: 'skewed', pin });
  send('1', oldIp, '7', 60_000);
  await until('a current request', async () => (await requests('current')) === 1);
  writeFileSync(file, `clusters: { skewed: [${newIp}] }\n`);
  await until('the change', async () => (await sidelight.metric('sidelight_discovery_changes_total')) === 1);
  send('2', oldIp, '7', 61_000);
  await sleep(3500);
  send('3', oldIp, '7', 64_000);
  send('4', newIp, '8', 60_000);
  send('5', oldIp, '9', 0);
  const pinned = async () =>
    Object.fromEntries(
      await Promise.all(
        ['current', 'draining', 'stale', 'stale_view', 'unknown'].map(
          async (pin) => [pin, await requests(pin)] as const,
        ),
      ),
    );
  await until('all five', async () => (await sidelight.metric('sidelight_requests_total')) === 5);
  expect(await pinned()).toEqual({ current: 2, draining: 1, stale: 1, stale_view: 1, unknown: 0 });
});
