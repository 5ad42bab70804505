import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { dnsCluster, staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { asksFor, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { keepSending, pinsOf, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* Where the world's list comes from, and what a source that fails, lags, rotates or restarts makes of the pins. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const startDns = async () => cleanup.use(await DnsServer.start());
const startService = async (config: ConfigInput) => cleanup.use(await startTestSidelight(config));
const addresses = (...ips: string[]) => ({ kind: 'addresses', addresses: ips, ttlSeconds: 1 }) as const;

it('two resolvers that do not agree yet: listed while either lists it, left when both have moved', async () => {
  const [near, far] = [await startDns(), await startDns()];
  const config = asksFor(['two-dns'], near, 500);
  const servers = [near, far].map(({ port }) => `127.0.0.1:${port}`);
  const sidelight = await startService({
    ...config,
    discovery: { dns: { ...config.discovery?.dns, servers, ask: 'all' } },
  });
  far.set('two-dns.test', addresses(oldIp));
  const move = await setUpMove(cleanup, { dns: near, sidelight }, { name: 'two-dns', kind: 'LOGICAL_DNS' });
  const { stop } = await move.traffic();
  move.answer(newIp);
  await until('the new address', async () => (await move.changes()) === 1);
  await sleep(1500);
  expect(await move.connections('current')).toBeGreaterThan(0);
  expect((await move.connections('draining')) + (await move.connections('stale'))).toBe(0);
  far.set('two-dns.test', addresses(newIp));
  await until('stale connections', async () => (await move.connections('stale')) > 0);
  await stop();
});

it('one of two resolvers fails: its list holds until it is stale, then nothing is known, and the log names it', async () => {
  const [near, far] = [await startDns(), await startDns()];
  const config = asksFor(['half-dead'], near, 500);
  const servers = [near, far].map(({ port }) => `127.0.0.1:${port}`);
  const sidelight = await startService({
    ...config,
    discovery: { dns: { ...config.discovery?.dns, servers, ask: 'all', staleAfterMs: 2000 } },
  });
  far.set('half-dead.test', addresses(oldIp));
  const move = await setUpMove(cleanup, { dns: near, sidelight }, { name: 'half-dead' });
  const { failures, stop } = await move.traffic();
  far.set('half-dead.test', { kind: 'garbage' });
  await until('unknown connections', async () => (await move.connections('unknown')) > 0);
  expect(await move.connections('current')).toBe(0);
  const told = sidelight.log.findLast(({ event }) => event === 'discovery.failed')?.fields['error'] as Error;
  expect(told.message).toBe(`half-dead.test: found "EBADRESP from 127.0.0.1:${far.port}": expected addresses`);
  far.set('half-dead.test', addresses(oldIp));
  await until('current connections', async () => (await move.connections('current')) > 0);
  await stop();
  expect(failures()).toBe(0);
});

it('a rotating subset under a window: every pin is current, and an address that is really gone leaves after its time', async () => {
  const dns = await startDns();
  const ips = Array.from({ length: 8 }, (_, i) => `127.0.0.${i + 21}`);
  const config = asksFor(['rotating'], dns, 500);
  const [rule = { match: 'rotating' }] = config.clusters ?? [];
  const sidelight = await startService({ ...config, clusters: [{ ...rule, windowMs: 6000 }] });
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'rotating', kind: 'LOGICAL_DNS', ips });
  dns.set('rotating.test', { kind: 'rotating', addresses: ips, ttlSeconds: 1, size: 3 });
  const { stop } = await move.traffic();
  await until('a whole turn', async () => (await move.changes()) >= 16);
  move.upstreams.cycle();
  await until('requests on it', async () => (await move.requests('current')) > 200);
  for (const pin of ['draining', 'stale', 'stale_view']) expect([pin, await move.requests(pin)]).toEqual([pin, 0]);
  const { pins } = await pinsOf(sidelight, 'rotating');
  const used = new Set(pins.map(({ endpoint }) => endpoint.split(':')[0] ?? ''));
  dns.set('rotating.test', addresses(...ips.filter((ip) => !used.has(ip)).slice(0, 3)));
  await sleep(3000);
  expect((await move.connections('draining')) + (await move.connections('stale'))).toBe(0);
  await until('stale connections', async () => (await move.connections('stale')) > 0);
  await stop();
});

it('a proxy that holds the old answer for its whole TTL: its connections drain, none is stale or stale_view', async () => {
  const dns = await startDns();
  const config = asksFor(['late'], dns);
  const sidelight = await startService({
    ...config,
    discovery: { dns: { ...config.discovery?.dns, refreshMs: 3000 } },
  });
  const answer = (ip: string) => dns.set('late.test', { kind: 'addresses', addresses: [ip], ttlSeconds: 12 });
  answer(oldIp);
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp, newIp] }));
  const named = { host: 'late.test', port: upstreams.port, dnsPort: dns.port };
  // However often it asks, Envoy's own resolver (c-ares) answers from its cache until the TTL is over (1.40).
  const cluster = dnsCluster({ name: 'late', kind: 'STRICT_DNS', ...named, extra: { respect_dns_ttl: false } });
  const envoy = await startReporter(cleanup, 'late', {
    sidelightPort: sidelight.grpcPort,
    clusters: [cluster],
    routes: [routeTo('late')],
  });
  const { stop } = keepSending(cleanup, envoy);
  const requests = (pin: string) => sidelight.metric('sidelight_pinned_requests_total', { cluster: 'late', pin });
  await until('current requests', async () => (await requests('current')) > 0);
  answer(newIp);
  await until('the change', async () => (await sidelight.metric('sidelight_discovery_changes_total')) === 2);
  // From now on on new connections, to the address that left.
  upstreams.cycle(oldIp);
  await until('draining requests', async () => (await requests('draining')) > 20);
  await until('the new address', () => upstreams.requests(newIp) > 20);
  await sleep(1500);
  await stop();
  expect([await requests('stale'), await requests('stale_view')]).toEqual([0, 0]);
});

it('a bad line in the file: the log names it, and what the file said grows stale, never current', async () => {
  const file = join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  writeFileSync(file, `clusters:\n  filed: [${oldIp}]\n`);
  const sidelight = await startService({ discovery: { file, fileStaleAfterMs: 1000 } });
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp] }));
  const envoy = await startReporter(cleanup, 'filed', {
    sidelightPort: sidelight.grpcPort,
    clusters: [staticCluster(upstreams.addresses, { name: 'filed' })],
    routes: [routeTo('filed')],
  });
  const { failures, stop } = keepSending(cleanup, envoy);
  const connections = (pin: string) => sidelight.metric('sidelight_pins', { cluster: 'filed', pin });
  await until('current connections', async () => (await connections('current')) > 0);
  writeFileSync(`${file}.new`, `clusters:\n  filed:\n    - ${oldIp}\n    - nowhere\n`);
  renameSync(`${file}.new`, file);
  await until('unknown connections', async () => (await connections('unknown')) > 0);
  expect(await connections('current')).toBe(0);
  const told = sidelight.log.find(({ event }) => event === 'discovery.failed')?.fields['error'] as Error;
  expect(told.message).toBe(`${file}: line 4: clusters.filed[1]: found "nowhere": expected IP, IP:port or [IPv6]:port`);
  await stop();
  expect(failures()).toBe(0);
});

/** A service that can be stopped and started anew on the same port, so that the same Envoy finds it. */
async function restartable(config: ConfigInput): Promise<() => Promise<TestSidelight>> {
  const port = await freePort();
  return async () => startService({ ...config, listen: { grpc: `127.0.0.1:${port}` } });
}

it('restarted in mid cut-over, with a state file: the old connections are stale again', async () => {
  const dns = await startDns();
  const stateFile = join(cleanup.use(tempDir()).path, 'state.json');
  const config = asksFor(['kept'], dns, 500);
  const start = await restartable({ ...config, discovery: { ...config.discovery, stateFile } });
  const before = await start();
  const move = await setUpMove(cleanup, { dns, sidelight: before }, { name: 'kept', kind: 'LOGICAL_DNS' });
  const { failures, stop } = await move.traffic();
  move.answer(newIp);
  await until('stale connections', async () => (await move.connections('stale')) > 0);
  const first = (await pinsOf(before, 'kept')).pins.find(({ pin }) => pin === 'stale');
  await before.close();
  expect(readFileSync(stateFile, 'utf8')).toContain('kept.test');
  const after = await start();
  const requests = (pin: string) => after.metric('sidelight_pinned_requests_total', { cluster: 'kept', pin });
  await until('stale requests after the restart', async () => (await requests('stale')) > 20);
  const { pins } = await pinsOf(after, 'kept');
  for (const pin of pins)
    expect(pin).toMatchObject({ pin: 'stale', leftAtMs: first?.leftAtMs, endpoint: first?.endpoint });
  await stop();
  for (const pin of ['current', 'unlisted', 'stale_view', 'draining'])
    expect([pin, await requests(pin)]).toEqual([pin, 0]);
  expect(failures()).toBe(0);
});

it('restarted over the moment of the move: it leaves at the first answer after, and its connections become stale', async () => {
  const dns = await startDns();
  const stateFile = join(cleanup.use(tempDir()).path, 'state.json');
  const config = asksFor(['missed'], dns, 1500);
  const start = await restartable({ ...config, discovery: { ...config.discovery, stateFile } });
  const before = await start();
  const move = await setUpMove(cleanup, { dns, sidelight: before }, { name: 'missed', kind: 'LOGICAL_DNS' });
  const { stop } = await move.traffic();
  await before.close();
  move.answer(newIp);
  await sleep(1500);
  const startedMs = Date.now();
  const after = await start();
  const connections = (pin: string) => after.metric('sidelight_pins', { cluster: 'missed', pin });
  await until('stale connections', async () => (await connections('stale')) > 0);
  const { pins } = await pinsOf(after, 'missed');
  expect(pins[0]).toMatchObject({ pin: 'stale', endpoint: expect.stringMatching(new RegExp(`^${oldIp}:`)) });
  expect(pins[0]?.leftAtMs).toBeGreaterThanOrEqual(startedMs);
  await stop();
});

it('a state file that cannot be used is set aside, told, and the service starts without it', async () => {
  const dns = await startDns();
  const stateFile = join(cleanup.use(tempDir()).path, 'state.json');
  writeFileSync(stateFile, '{"version":1,"savedAtMs":');
  const config = asksFor(['corrupt'], dns, 500);
  const sidelight = await startService({ ...config, discovery: { ...config.discovery, stateFile } });
  expect(sidelight.log.find(({ event }) => event === 'state.failed')?.fields['error']).toMatchObject({
    code: 'state_file_set_aside',
  });
  const move = await setUpMove(cleanup, { dns, sidelight }, { name: 'corrupt' });
  const { stop } = await move.traffic();
  await until('a new file', () => existsSync(stateFile) && readFileSync(stateFile, 'utf8').includes('corrupt.test'));
  await stop();
});
