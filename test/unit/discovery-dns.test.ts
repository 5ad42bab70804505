import { describe, expect, type TestContext, test, vi } from 'vitest';
import type { EndpointChange } from '../../src/discovery/change.ts';
import type { Discovery, DiscoveryOptions } from '../../src/discovery/discovery.ts';
import { judgePin } from '../../src/judge/pin.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import type { SidelightError } from '../../src/lib/errors.ts';
import { type DnsOptions, discovering, dnsOptions, noRule } from '../support/discovery.ts';

/** A private name server, and what a discovery that asks it told. Each test has its own, so that they can wait at once. */
async function scene({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const cleanup = new Cleanup();
  onTestFinished(() => cleanup.run());
  const dns = cleanup.use(await DnsServer.start());
  const changes: EndpointChange[] = [];
  const errors: SidelightError[] = [];

  function discover(change: Partial<DiscoveryOptions> = {}, dnsChange: Partial<DnsOptions> = {}): Discovery {
    const { discovery } = discovering(cleanup, {
      dns: dnsOptions([`127.0.0.1:${dns.port}`], dnsChange),
      onChange: (seen) => changes.push(seen),
      onError: (error) => errors.push(error),
      ...change,
    });
    return discovery;
  }

  return { cleanup, dns, changes, errors, discover };
}

const cluster = 'outbound|443||a.example.com';
const addresses = (...given: string[]) => ({ kind: 'addresses', addresses: given, ttlSeconds: 1 }) as const;
const listed = (discovery: Discovery, name = cluster) => [...(discovery.snapshot().cluster(name)?.listed.keys() ?? [])];
const until = { timeout: 5000, interval: 10 };

describe.concurrent('discovery by DNS', () => {
  test('a cluster is asked for when it carries traffic; A and AAAA are merged; the first answer is no change', async (context) => {
    const { dns, changes, discover } = await scene(context);
    dns.set('a.example.com', addresses('127.0.0.11', '127.0.0.12'));
    dns.set('a.example.com', addresses('0:0::1'), 'AAAA');
    const discovery = discover();
    expect(discovery.snapshot().cluster(cluster)).toBeUndefined();
    discovery.watch(cluster);
    expect(discovery.snapshot().cluster(cluster)).toMatchObject({
      cluster,
      source: 'dns',
      subject: 'a.example.com',
      firstAnswerMs: undefined,
      sameAsProxy: true,
      staleAfterMs: 60_000,
    });
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11', '127.0.0.12', '::1']), until);
    expect(discovery.snapshot().clusters()).toEqual([discovery.snapshot().cluster(cluster)]);
    expect(changes).toEqual([]);
  });

  test('a flip is a change with its time; what left is remembered, and is listed again when it comes back', async (context) => {
    const { dns, changes, discover } = await scene(context);
    dns.set('a.example.com', addresses('127.0.0.11'));
    const discovery = discover();
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11']), until);
    dns.set('a.example.com', addresses('127.0.0.12'));
    const flippedMs = Date.now();
    await vi.waitFor(() => expect(changes).toHaveLength(1), until);
    expect(changes[0]).toMatchObject({ cluster, source: 'dns', added: ['127.0.0.12'], removed: ['127.0.0.11'] });
    expect(changes[0]?.atMs).toBeGreaterThanOrEqual(flippedMs);
    const view = discovery.snapshot().cluster(cluster);
    expect([...(view?.left ?? [])]).toEqual([['127.0.0.11', changes[0]?.atMs]]);
    expect(view).toMatchObject({ graceMs: 10_000, changes: { added: 1, removed: 1 } });
    dns.set('a.example.com', addresses('127.0.0.11'));
    await vi.waitFor(() => expect(changes).toHaveLength(2), until);
    expect([...(discovery.snapshot().cluster(cluster)?.left.keys() ?? [])]).toEqual(['127.0.0.12']);
    // The view that was taken before is as it was.
    expect([...(view?.left.keys() ?? [])]).toEqual(['127.0.0.11']);
  });

  test.for([
    ['servfail', 'ESERVFAIL'],
    ['drop', 'ETIMEOUT'],
    ['garbage', 'EBADRESP'],
  ] as const)(
    '%s empties nothing: the view keeps its list, tells the error and ages',
    async ([kind, code], context) => {
      const { dns, changes, errors, discover } = await scene(context);
      dns.set('a.example.com', addresses('127.0.0.11'));
      const discovery = discover();
      discovery.watch(cluster);
      await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11']), until);
      dns.set('a.example.com', { kind });
      await vi.waitFor(() => expect(errors).toHaveLength(1), until);
      const view = discovery.snapshot().cluster(cluster);
      await vi.waitFor(() => expect(errors).toHaveLength(2), until);
      expect(errors[0]).toMatchObject({
        code: 'dns_failed',
        message: expect.stringMatching(new RegExp(`^a.example.com: found "E[A-Z]+ from 127.0.0.1:${dns.port}"`)),
      });
      expect(view?.lastError).toBe(`${code} from 127.0.0.1:${dns.port}`);
      expect(discovery.snapshot().cluster(cluster)?.lastAnswerMs).toBe(view?.lastAnswerMs);
      expect(listed(discovery)).toEqual(['127.0.0.11']);
      dns.set('a.example.com', addresses('127.0.0.11'));
      await vi.waitFor(() => expect(discovery.snapshot().cluster(cluster)?.lastError).toBeUndefined(), until);
      expect(changes).toEqual([]);
    },
  );

  test('a name server that is gone empties nothing, and is heard again when it is back', async (context) => {
    const { cleanup, changes, errors, discover } = await scene(context);
    const first = await DnsServer.start();
    // Closed below already, unless the test fails before.
    cleanup.defer(() => first.close().catch(() => undefined));
    const { port } = first;
    first.set('a.example.com', addresses('127.0.0.11'));
    const discovery = discover({}, { servers: [`127.0.0.1:${port}`] });
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11']), until);
    await first.close();
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), until);
    expect(listed(discovery)).toEqual(['127.0.0.11']);
    const second = cleanup.use(await DnsServer.start(port));
    second.set('a.example.com', addresses('127.0.0.12'));
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.12']), until);
    expect(changes).toHaveLength(1);
  });

  test.for(['nxdomain', 'nodata'] as const)(
    '%s is believed when said twice: then all have left',
    async (kind, context) => {
      const { dns, changes, discover } = await scene(context);
      dns.set('a.example.com', addresses('127.0.0.11'));
      const discovery = discover();
      discovery.watch(cluster);
      await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11']), until);
      const before = dns.queries('a.example.com');
      dns.set('a.example.com', { kind });
      await vi.waitFor(() => expect(changes).toHaveLength(1), until);
      expect(dns.queries('a.example.com') - before).toBe(2);
      expect(changes[0]).toMatchObject({ added: [], removed: ['127.0.0.11'] });
      const { lastAnswerMs } = discovery.snapshot().cluster(cluster) ?? {};
      await vi.waitFor(() => expect(discovery.snapshot().cluster(cluster)?.lastAnswerMs).not.toBe(lastAnswerMs), until);
    },
  );

  test('an answer that is too long for UDP is read whole', async (context) => {
    const { dns, errors, discover } = await scene(context);
    const many = Array.from({ length: 200 }, (_, i) => `10.0.0.${i}`);
    dns.set('a.example.com', { kind: 'long', addresses: many, ttlSeconds: 1 });
    const discovery = discover();
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery).toSorted()).toEqual(many.toSorted()), until);
    expect(errors).toEqual([]);
  });

  test('garbage from the first answer on judges nothing, and again nothing when the view is stale', async (context) => {
    const { dns, errors, discover } = await scene(context);
    dns.set('a.example.com', { kind: 'garbage' });
    const discovery = discover({}, { staleAfterMs: 800 });
    const endpoint = { text: '127.0.0.11:80', kind: 'ip', ip: '127.0.0.11', port: 80 } as const;
    const pin = () => {
      const nowMs = Date.now();
      const view = discovery.snapshot().cluster(cluster);
      return judgePin({ view, endpoint, connectionOpenedMs: 1, requestStartMs: nowMs, nowMs, clockUncertaintyMs: 0 });
    };
    discovery.watch(cluster);
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), until);
    expect(pin()).toMatchObject({ pin: 'unknown', reason: 'no_answer_yet' });
    dns.set('a.example.com', addresses('127.0.0.11'));
    await vi.waitFor(() => expect(pin()).toMatchObject({ pin: 'current' }), until);
    dns.set('a.example.com', { kind: 'garbage' });
    await vi.waitFor(() => expect(pin()).toMatchObject({ pin: 'unknown', reason: 'source_stale' }), until);
    expect(listed(discovery)).toEqual(['127.0.0.11']);
  });

  test('asked all, the list is everything that any server lists; one that fails holds what it said and is named', async (context) => {
    const { cleanup, dns, changes, errors, discover } = await scene(context);
    const other = cleanup.use(await DnsServer.start());
    dns.set('a.example.com', addresses('127.0.0.11', '127.0.0.12'));
    other.set('a.example.com', addresses('127.0.0.12', '127.0.0.13'));
    const discovery = discover({}, { ask: 'all', servers: [`127.0.0.1:${dns.port}`, `127.0.0.1:${other.port}`] });
    const view = () => discovery.snapshot().cluster(cluster);
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11', '127.0.0.12', '127.0.0.13']), until);
    other.set('a.example.com', { kind: 'servfail' });
    await vi.waitFor(() => expect(errors).toHaveLength(1), until);
    expect(errors[0]?.message).toContain(`ESERVFAIL from 127.0.0.1:${other.port}`);
    expect(errors[0]?.message).not.toContain(`:${dns.port}`);
    const { lastAnswerMs } = view() ?? {};
    // What the one that answers says counts meanwhile, but the whole grows no younger.
    dns.set('a.example.com', addresses('127.0.0.14'));
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.14', '127.0.0.12', '127.0.0.13']), until);
    expect(view()).toMatchObject({ lastAnswerMs, lastError: `ESERVFAIL from 127.0.0.1:${other.port}` });
    expect(changes).toMatchObject([{ added: ['127.0.0.14'], removed: ['127.0.0.11'] }]);
    other.set('a.example.com', addresses('127.0.0.14'));
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.14']), until);
    expect(view()?.lastAnswerMs).toBeGreaterThan(lastAnswerMs ?? 0);
    expect(view()?.lastError).toBeUndefined();
  });

  test('asked all, a server that never knew the name takes nothing away and is told', async (context) => {
    const { cleanup, dns, errors, discover } = await scene(context);
    const other = cleanup.use(await DnsServer.start());
    dns.set('a.example.com', addresses('127.0.0.11'));
    const discovery = discover({}, { ask: 'all', servers: [`127.0.0.1:${dns.port}`, `127.0.0.1:${other.port}`] });
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11']), until);
    const first = discovery.snapshot().cluster(cluster)?.lastAnswerMs;
    await vi.waitFor(
      () => expect(discovery.snapshot().cluster(cluster)?.lastAnswerMs).toBeGreaterThan(first ?? Infinity),
      until,
    );
    expect(errors[0]?.message).toContain(`ENOTFOUND from 127.0.0.1:${other.port}`);
  });

  test('in a window an address stays listed until its time is over, whatever answers bring and take', async (context) => {
    const { dns, changes, discover } = await scene(context);
    const rules = new Map([['windowed', { ...noRule, host: 'a.example.com', windowMs: 1500 }]]);
    const discovery = discover({ rule: (name) => rules.get(name) ?? noRule });
    dns.set('a.example.com', addresses('127.0.0.11'));
    discovery.watch('windowed');
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery, 'windowed')).toEqual(['127.0.0.11']), until);
    dns.set('a.example.com', addresses('127.0.0.12'));
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.12']), until);
    const view = () => discovery.snapshot().cluster('windowed');
    expect([...(view()?.listed.keys() ?? [])].toSorted()).toEqual(['127.0.0.11', '127.0.0.12']);
    expect(view()).toMatchObject({ left: new Map(), changes: { added: 1, removed: 1 } });
    await vi.waitFor(() => expect(listed(discovery, 'windowed')).toEqual(['127.0.0.12']), until);
    const answeredWithoutMs = changes[0]?.atMs ?? 0;
    const leftAtMs = view()?.left.get('127.0.0.11') ?? 0;
    expect(leftAtMs).toBeGreaterThan(answeredWithoutMs + 500);
    expect(leftAtMs).toBeLessThanOrEqual(answeredWithoutMs + 1500);
    expect(changes.map((change) => change.cluster).toSorted()).toEqual([cluster, 'windowed']);
  });

  test('a name that never existed gives no answer', async (context) => {
    const { errors, discover } = await scene(context);
    const discovery = discover();
    discovery.watch('outbound|443||wrong.example.com');
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(2), until);
    expect(discovery.snapshot().cluster('outbound|443||wrong.example.com')).toMatchObject({
      firstAnswerMs: undefined,
      lastError: expect.stringMatching(/^ENOTFOUND from 127/),
    });
  });

  test('a rotating subset is followed; of what left no more is remembered than the bound', async (context) => {
    const { dns, changes, discover } = await scene(context);
    const eight = Array.from({ length: 8 }, (_, i) => `127.0.0.${i + 1}`);
    dns.set('a.example.com', { kind: 'rotating', addresses: eight, ttlSeconds: 0, size: 3 });
    const discovery = discover({ maxLeftPerCluster: 2 });
    discovery.watch(cluster);
    await vi.waitFor(() => expect(changes.length).toBeGreaterThan(3), until);
    const view = discovery.snapshot().cluster(cluster);
    expect([view?.listed.size, view?.left.size, view?.graceMs]).toEqual([3, 2, 600_000]);
  });

  test('a TTL longer than the refresh is asked for at the refresh, and lengthens the grace', async (context) => {
    const { dns, discover } = await scene(context);
    dns.set('a.example.com', { kind: 'addresses', addresses: ['127.0.0.11'], ttlSeconds: 300 });
    const discovery = discover();
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11']), until);
    dns.set('a.example.com', addresses('127.0.0.12'));
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.12']), until);
    expect(discovery.snapshot().cluster(cluster)?.graceMs).toBe(300_500);
  });

  test('clusters with one name share one loop, each with its own grace; the config names a host where the cluster does not', async (context) => {
    const { dns, changes, discover } = await scene(context);
    dns.set('a.example.com', addresses('127.0.0.11'));
    const rules = new Map([['plain', { ...noRule, host: 'a.example.com', graceMs: 2000 }]]);
    const discovery = discover({ rule: (name) => rules.get(name) ?? noRule });
    discovery.watch(cluster);
    await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.11']), until);
    discovery.watch('plain');
    expect(listed(discovery, 'plain')).toEqual(['127.0.0.11']);
    const before = dns.queries('a.example.com');
    dns.set('a.example.com', addresses('127.0.0.12'));
    await vi.waitFor(() => expect(changes.map((change) => change.cluster)).toEqual([cluster, 'plain']), until);
    expect(dns.queries('a.example.com') - before).toBe(1);
    expect(discovery.snapshot().cluster('plain')?.graceMs).toBe(2000);
    expect(discovery.snapshot().cluster(cluster)?.graceMs).toBe(10_000);
  });

  test('over the bounds a cluster is not covered, and it is told once', async (context) => {
    const { errors, discover } = await scene(context);
    const discovery = discover({ maxClusters: 2 }, { maxHosts: 1 });
    discovery.watch(cluster);
    discovery.watch('outbound|443||b.example.com');
    discovery.watch('outbound|443||c.example.com');
    discovery.watch('outbound|80||a.example.com');
    discovery.watch('outbound|81||a.example.com');
    discovery.watch('outbound|82||a.example.com');
    expect(
      discovery
        .snapshot()
        .clusters()
        .map((view) => view.cluster),
    ).toEqual([cluster, 'outbound|80||a.example.com']);
    expect(errors.map((error) => error.message)).toEqual([
      'discovery.dns.maxHosts: found "b.example.com": expected no more than 1',
      'limits.clusters: found "outbound|81||a.example.com": expected no more than 2',
    ]);
  });

  test('a cluster without a name is not covered, nor is any where DNS is off', async (context) => {
    const { discover } = await scene(context);
    const discovery = discover();
    discovery.watch('outbound|80||pay.shop.svc.cluster.local');
    expect(discovery.snapshot().cluster('outbound|80||pay.shop.svc.cluster.local')).toBeUndefined();
    const off = discover({ dns: undefined });
    off.watch(cluster);
    expect(off.snapshot().clusters()).toEqual([]);
  });

  test('after stop nothing is asked and nothing is called back', async (context) => {
    const { dns, errors, discover } = await scene(context);
    dns.set('a.example.com', { kind: 'drop' });
    const discovery = discover();
    discovery.watch(cluster);
    await vi.waitFor(() => expect(dns.queries('a.example.com')).toBe(1), until);
    discovery.stop();
    await new Promise((resolve) => setTimeout(resolve, 800));
    expect(dns.queries('a.example.com')).toBe(1);
    expect(errors).toEqual([]);
  });
});
