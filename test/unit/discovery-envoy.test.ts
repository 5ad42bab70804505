import { writeFileSync } from 'node:fs';
import type http from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, type TestContext, test, vi } from 'vitest';
import type { DiscoveryOptions } from '../../src/discovery/discovery.ts';
import { patternsOf } from '../../src/discovery/envoy/patterns.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { discovering, dnsOptions, noRule } from '../support/discovery.ts';
import { FakeAdmin } from '../support/fake-admin.ts';

async function scene({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const cleanup = new Cleanup();
  onTestFinished(() => cleanup.run());
  const admin = cleanup.use(await FakeAdmin.start());
  async function discover(urls: readonly string[] = [admin.url], given: Partial<DiscoveryOptions> = {}) {
    const envoyAdmin = { urls, refreshMs: 50, timeoutMs: 1000, staleAfterMs: 2000 };
    const found = discovering(cleanup, { envoyAdmin, ...given });
    await found.discovery.start();
    return found;
  }
  return { cleanup, admin, discover };
}

const until = { timeout: 5000, interval: 5 };
const one = { hosts: [{ address: '127.0.0.11', activeConnections: 1 }], activeConnections: 1 };

describe.concurrent("proxies' own lists", () => {
  test('a proxy is asked for the clusters that it reported, by exact names, and for no other', async (context) => {
    const { admin, discover } = await scene(context);
    admin.clusters.set('outbound|80||a.test', one).set('outbound|80||aXtest', one).set('other', one);
    const { discovery, errors } = await discover();
    discovery.watch('outbound|80||a.test', 'node-1');
    discovery.watch('other', 'node-2');
    const proxy = () => discovery.snapshot().proxy('outbound|80||a.test', 'node-1');
    await vi.waitFor(() => expect(proxy()).toBeDefined(), until);
    expect(proxy()).toMatchObject({
      nodeId: 'node-1',
      cluster: 'outbound|80||a.test',
      subject: admin.url,
      type: 'STATIC',
      envoyVersion: '1.40.0',
      activeConnections: 1,
      hosts: new Map([['127.0.0.11:80', { activeConnections: 1, healthy: true, pendingRemoval: false }]]),
      staleAfterMs: 2000,
      lastError: undefined,
    });
    expect(discovery.snapshot().proxies()).toHaveLength(1);
    expect(discovery.snapshot().proxy('other', 'node-1')).toBeUndefined();
    const aboutClusters = admin.asked.filter((asked) => asked.startsWith('/clusters'));
    expect(new Set(aboutClusters)).toEqual(
      new Set([String.raw`/clusters?format=json&filter=^(?:outbound\|80\|\|a\.test)$`]),
    );
    expect(errors).toEqual([]);
  });

  test('nothing but who answers is asked before a report', async (context) => {
    const { admin, discover } = await scene(context);
    await discover();
    await vi.waitFor(() => expect(admin.asked.length).toBeGreaterThan(1), until);
    await sleep(300);
    expect(admin.asked).toEqual(['/server_info', '/runtime?format=json']);
  });

  test('a report that came before the proxy answered is not forgotten', async (context) => {
    const { admin, discover } = await scene(context);
    admin.clusters.set('a', one);
    admin.state = 'INITIALIZING';
    const { discovery, errors } = await discover();
    discovery.watch('a', 'node-1');
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), until);
    expect(errors[0]?.message).toBe(`${admin.url}/server_info: found "INITIALIZING": expected state LIVE`);
    admin.state = 'LIVE';
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-1')).toBeDefined(), until);
  });

  test("config is asked once, again when the proxy was started anew; statistics by the cluster's other name", async (context) => {
    const { admin, discover } = await scene(context);
    admin.clusters.set('a:80', { ...one, type: 'EDS', statName: 'b:c' });
    // As Envoy spells it.
    admin.clusters.set('b_c', { hosts: [], activeConnections: 7, statName: 'b_c' });
    const { discovery } = await discover();
    discovery.watch('a:80', 'node-1');
    const proxy = () => discovery.snapshot().proxy('a:80', 'node-1');
    await vi.waitFor(() => expect(proxy()).toMatchObject({ type: 'EDS', activeConnections: 7 }), until);
    const configs = () => admin.asked.filter((asked) => asked.includes('resource=static_clusters')).length;
    await sleep(200);
    expect(configs()).toBe(1);
    admin.uptimeSeconds = 1;
    admin.clusters.set('a:80', { ...one, type: 'STRICT_DNS', statName: 'b:c' });
    await vi.waitFor(() => expect(proxy()?.type).toBe('STRICT_DNS'), until);
    expect(configs()).toBe(2);
  });

  test('a statistic that is not kept is not 0', async (context) => {
    const { admin, discover } = await scene(context);
    admin.clusters.set('a', { hosts: one.hosts });
    const { discovery } = await discover();
    discovery.watch('a', 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-1')).toBeDefined(), until);
    expect(discovery.snapshot().proxy('a', 'node-1')?.activeConnections).toBeUndefined();
  });

  test('what was opened while a proxy was asked, its answer need not know', async (context) => {
    const { admin, discover } = await scene(context);
    const cluster = { ...one, totalConnections: 5 };
    admin.clusters.set('a', cluster);
    let clustersAskedMs = 0;
    admin.onAsked = async (path) => {
      if (path !== '/clusters') return;
      clustersAskedMs = Date.now();
      await sleep(30);
      cluster.totalConnections += 1;
    };
    const { discovery } = await discover();
    discovery.watch('a', 'node-1');
    const proxy = () => discovery.snapshot().proxy('a', 'node-1');
    await vi.waitFor(() => expect(proxy()?.openedMeanwhile).toBe(true), until);
    expect(proxy()?.lastAnswerMs).toBeLessThanOrEqual(clustersAskedMs);
    admin.onAsked = undefined;
    await vi.waitFor(() => expect(proxy()?.openedMeanwhile).toBe(false), until);
  });

  test('further addresses of a host are its hosts too, without a count of their own', async (context) => {
    const { admin, discover } = await scene(context);
    admin.clusters.set('a', { ...one, hosts: [{ address: '127.0.0.11', activeConnections: 1, further: ['0:0::1'] }] });
    const { discovery } = await discover();
    discovery.watch('a', 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-1')).toBeDefined(), until);
    expect([...(discovery.snapshot().proxy('a', 'node-1')?.hosts ?? [])]).toEqual([
      ['127.0.0.11:80', { activeConnections: 1, healthy: true, pendingRemoval: false }],
      ['[::1]:80', { activeConnections: undefined, healthy: true, pendingRemoval: false }],
    ]);
    expect([...(discovery.snapshot().cluster('a')?.listed.keys() ?? [])]).toEqual(['127.0.0.11:80', '[::1]:80']);
  });

  test("where nothing else covers a cluster, each proxy's list stands for the world's: to that proxy alone", async (context) => {
    const { cleanup, admin, discover } = await scene(context);
    const second = cleanup.use(await FakeAdmin.start());
    second.nodeId = 'node-2';
    admin.clusters.set('a', one);
    second.clusters.set('a', { ...one, hosts: [{ address: '127.0.0.12' }] });
    const { discovery, changes } = await discover([admin.url, second.url]);
    discovery.watch('a', 'node-1');
    discovery.watch('a', 'node-2');
    const listed = (nodeId?: string) => [...(discovery.snapshot().cluster('a', nodeId)?.listed.keys() ?? [])];
    await vi.waitFor(
      () => expect([listed('node-1'), listed('node-2')]).toEqual([['127.0.0.11:80'], ['127.0.0.12:80']]),
      until,
    );
    expect(listed()).toEqual(['127.0.0.11:80']);
    expect(discovery.snapshot().cluster('a', 'node-3')).toBeUndefined();
    expect(discovery.snapshot().clusters()).toMatchObject([{ cluster: 'a', source: 'envoy', subject: admin.url }]);
    admin.clusters.set('a', {
      hosts: [{ address: '127.0.0.13' }, { address: '127.0.0.11', activeConnections: 1, pendingRemoval: true }],
      activeConnections: 1,
    });
    await vi.waitFor(() => expect(changes).toHaveLength(1), until);
    expect(changes[0]).toMatchObject({
      cluster: 'a',
      source: 'envoy',
      nodeId: 'node-1',
      added: ['127.0.0.13:80'],
      removed: ['127.0.0.11:80'],
    });
    expect(discovery.snapshot().cluster('a', 'node-1')).toMatchObject({
      graceMs: 10_000,
      sameAsProxy: true,
      staleAfterMs: 2000,
      left: new Map([['127.0.0.11:80', changes[0]?.atMs]]),
    });
    expect(discovery.snapshot().proxy('a', 'node-1')?.hosts.get('127.0.0.11:80')?.pendingRemoval).toBe(true);
    // The one that still answers speaks for the cluster.
    await admin.close();
    await vi.waitFor(() => expect(listed()).toEqual(['127.0.0.12:80']), until);
  });

  test('a cluster that a file or DNS covers has no other source, also when that one fails', async (context) => {
    const { cleanup, admin, discover } = await scene(context);
    const file = join(cleanup.use(tempDir()).path, 'endpoints.yaml');
    writeFileSync(file, 'clusters: {filed: [127.0.0.21]}');
    admin.clusters.set('filed', one).set('named', one);
    const { discovery } = await discover([admin.url], {
      dns: dnsOptions(['127.0.0.1:1']),
      file: { path: file, staleAfterMs: 100, pollMs: 20 },
      rule: (cluster) => ({ ...noRule, host: cluster === 'named' ? 'a.example.com' : undefined }),
    });
    for (const cluster of ['filed', 'named']) discovery.watch(cluster, 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxies()).toHaveLength(2), until);
    writeFileSync(file, 'clusters: 7');
    await vi.waitFor(() => expect(discovery.snapshot().cluster('filed')?.lastError).toBeDefined(), until);
    expect(discovery.snapshot().cluster('filed', 'node-1')).toMatchObject({ source: 'file' });
    expect(discovery.snapshot().cluster('named', 'node-1')).toMatchObject({ source: 'dns', firstAnswerMs: undefined });
    expect(
      discovery
        .snapshot()
        .clusters()
        .map(({ source }) => source)
        .toSorted(),
    ).toEqual(['dns', 'file']);
  });

  test('a proxy that fails keeps what it said, ages, and is heard again', async (context) => {
    const { cleanup, admin, discover } = await scene(context);
    admin.clusters.set('a', one);
    const { discovery, errors } = await discover();
    discovery.watch('a', 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-1')).toBeDefined(), until);
    const { port } = admin;
    await admin.close();
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), until);
    const before = discovery.snapshot().proxy('a', 'node-1');
    expect(errors[0]?.message).toMatch(
      new RegExp(`^http://127.0.0.1:${port}/\\w+: .*(ECONNREFUSED|other side closed)`),
    );
    expect(before).toMatchObject({ lastError: errors[0]?.message, activeConnections: 1 });
    expect(discovery.snapshot().cluster('a', 'node-1')).toMatchObject({ lastError: before?.lastError });
    const again = cleanup.use(await FakeAdmin.start(port));
    again.clusters.set('a', { hosts: [], activeConnections: 0 });
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-1')?.hosts.size).toBe(0), until);
    expect(discovery.snapshot().proxy('a', 'node-1')?.lastError).toBeUndefined();
  });

  test('another Envoy at the address has nothing of the one before', async (context) => {
    const { admin, discover } = await scene(context);
    admin.clusters.set('a', one);
    const { discovery } = await discover();
    discovery.watch('a', 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-1')).toBeDefined(), until);
    admin.nodeId = 'node-9';
    admin.uptimeSeconds = 0;
    await vi.waitFor(() => expect(discovery.snapshot().proxies()).toEqual([]), until);
    discovery.watch('a', 'node-9');
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-9')).toBeDefined(), until);
  });

  test('a second Envoy with the same node id is told and not asked', async (context) => {
    const { cleanup, admin, discover } = await scene(context);
    const second = cleanup.use(await FakeAdmin.start());
    admin.clusters.set('a', one);
    second.clusters.set('a', { hosts: [], activeConnections: 0 });
    const { discovery, errors } = await discover([admin.url, second.url]);
    discovery.watch('a', 'node-1');
    await vi.waitFor(() => expect(errors).toHaveLength(1), until);
    await vi.waitFor(() => expect(discovery.snapshot().proxy('a', 'node-1')?.subject).toBe(admin.url), until);
    expect(errors[0]?.message).toBe(`${second.url}: found "node-1": expected a node id that no other Envoy has`);
    expect(second.asked).toEqual(['/server_info']);
  });

  test.for<[string, (path: string, response: http.ServerResponse) => void, RegExp]>([
    ['hangs before its head', () => undefined, /\/server_info: no whole answer in 1000 ms$/],
    [
      'hangs in mid-answer',
      (_path, response) => void response.write('{"version":'),
      /\/server_info: no whole answer in 1000 ms$/,
    ],
    [
      'says 403',
      (_path, response) => void response.writeHead(403).end(),
      /\/server_info: found 403: expected status 200$/,
    ],
    ['sends what is no JSON', (_path, response) => void response.end('<html>'), /\/server_info: .*JSON/],
    ['sends another JSON', (_path, response) => void response.end('[]'), /\/server_info: expected an answer of Envoy/],
    [
      'redirects',
      (_path, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /\/server_info: .*redirect/,
    ],
    [
      'sends 50 MB',
      (_path, response) => {
        const piece = Buffer.alloc(1 << 20, 32);
        const send = (left: number): void => {
          if (left === 0) response.end();
          else response.write(piece, () => send(left - 1));
        };
        send(50);
      },
      /\/server_info: expected at most 8388608 bytes$/,
    ],
  ])('one that %s is told by its address, and the others go on', async ([_name, instead, message], context) => {
    const { cleanup, admin, discover } = await scene(context);
    const good = cleanup.use(await FakeAdmin.start());
    good.nodeId = 'node-2';
    good.clusters.set('a', one);
    admin.instead = instead;
    const { discovery, errors } = await discover([admin.url, good.url]);
    discovery.watch('a', 'node-2');
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), until);
    expect(errors[0]?.code).toBe('envoy_admin_failed');
    expect(errors[0]?.message.startsWith(admin.url)).toBe(true);
    expect(errors[0]?.message).toMatch(message);
    const { lastAnswerMs } = discovery.snapshot().proxy('a', 'node-2') ?? {};
    await vi.waitFor(
      () => expect(discovery.snapshot().proxy('a', 'node-2')?.lastAnswerMs).toBeGreaterThan(lastAnswerMs ?? 0),
      until,
    );
    discovery.stop();
    await vi.waitFor(() => expect(admin.openSockets).toBe(0), { timeout: 8000 });
  });

  test('an Envoy that knows no filter (1.37) gives all at once, and only what was asked is kept', async (context) => {
    const { admin, discover } = await scene(context);
    admin.ignoresFilter = true;
    const names = Array.from({ length: 300 }, (_, i) => `outbound|80||${'long'.repeat(10)}${i}.example.com`);
    for (const name of [...names, 'other']) admin.clusters.set(name, one);
    const { discovery } = await discover([admin.url], { maxClusters: 300 });
    for (const name of names) discovery.watch(name, 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxies()).toHaveLength(300), until);
    const asked = admin.asked.filter((path) => path.startsWith('/clusters')).length;
    const rounds =
      admin.asked.filter((path) => path.startsWith('/stats') && path.includes('server\\.uptime')).length / 2;
    expect(asked).toBeLessThanOrEqual(Math.ceil(rounds));
    expect(discovery.snapshot().proxy('other', 'node-1')).toBeUndefined();
  });

  test('many clusters are asked for in several questions, none too long for an address', async (context) => {
    const { admin, discover } = await scene(context);
    const names = Array.from({ length: 300 }, (_, i) => `outbound|80||${'long'.repeat(10)}${i}.example.com`);
    for (const name of names) admin.clusters.set(name, one);
    const { discovery } = await discover([admin.url], { maxClusters: 300 });
    for (const name of names) discovery.watch(name, 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxies()).toHaveLength(300), until);
    const asked = admin.asked.filter((path) => path.startsWith('/clusters'));
    expect(asked.length).toBeGreaterThan(4);
    expect(Math.max(...admin.asked.map((path) => encodeURI(path).length))).toBeLessThan(8000);
  });

  test('over the bound a cluster of a proxy is not asked for, and it is told once', async (context) => {
    const { admin, discover } = await scene(context);
    for (const name of ['a', 'b', 'c', 'd']) admin.clusters.set(name, one);
    const { discovery, errors } = await discover([admin.url], { maxClusters: 2 });
    for (const name of ['a', 'b', 'c', 'd']) discovery.watch(name, 'node-1');
    await vi.waitFor(() => expect(discovery.snapshot().proxies()).toHaveLength(2), until);
    expect(errors.map(({ message }) => message)).toEqual([
      'limits.clusters: found "c": expected no more than 2 of one proxy',
    ]);
  });
});

test('a pattern finds the whole name and nothing else; what is too long for one makes several', () => {
  expect(patternsOf([])).toEqual([]);
  expect(patternsOf(['a.b', 'a|b'])).toEqual([String.raw`^(?:a\.b|a\|b)$`]);
  const odd = String.raw`(a)[b]{c}*+?^$\d`;
  expect(new RegExp(patternsOf([odd])[0] ?? '').test(odd)).toBe(true);
  const patterns = patternsOf(Array.from({ length: 1000 }, (_, i) => `cluster-${i}`));
  expect(patterns.length).toBeGreaterThan(2);
  expect(patterns.join('').match(/cluster-\d+/g)).toHaveLength(1000);
});
