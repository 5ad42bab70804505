import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
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

it.each([
  ['is dead', 'drop', 'ETIMEOUT'],
  ['sends garbage', 'garbage', 'EBADRESP'],
] as const)(
  'the name server %s: unknown, source_stale after its time; the list is kept, no request fails',
  async (_case, kind, error) => {
    const dns = await startDns();
    const config = asksFor(['dead-dns'], dns, 500);
    const sidelight = await startService({
      ...config,
      discovery: { dns: { ...config.discovery?.dns, staleAfterMs: 1500 } },
    });
    const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'dead-dns' });
    const { failures, stop } = await move.traffic();
    dns.set('dead-dns.test', { kind });
    await until('unknown connections', async () => (await move.connections('unknown')) > 0);
    const { pins } = await pinsOf(sidelight, 'dead-dns');
    expect(new Set(pins.map(({ pin, reason }) => `${pin} ${reason}`))).toEqual(new Set(['unknown source_stale']));
    const { clusters } = await sidelight.json<{ clusters: object[] }>('/api/v1/clusters');
    expect(clusters).toMatchObject([{ cluster: 'dead-dns', stale: true, listed: [{ endpoint: oldIp }], left: [] }]);
    expect(await sidelight.metric('sidelight_endpoint_listed', { cluster: 'dead-dns' })).toBe(1);
    expect(await sidelight.metric('sidelight_discovery_age_seconds', { cluster: 'dead-dns' })).toBeGreaterThan(1.4);
    const told = sidelight.log.find(({ event }) => event === 'discovery.failed')?.fields['error'] as Error;
    expect(told.message).toContain('dead-dns.test');
    expect(told.message).toContain(error);
    move.answer(oldIp);
    await until('current connections', async () => (await move.connections('current')) > 0);
    await stop();
    expect(failures()).toBe(0);
  },
);

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
