import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { envoyFacts } from '../support/envoy-facts.ts';
import { bothKindsOfDns, newIp, nothing, type OwnMove, oldIp, setUpOwnMove } from '../support/moving-name.ts';
import { type OtlpReceiver, type ReceivedExchange, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { cleaned, newDns } from '../support/reporting.ts';
import { until } from '../support/until.ts';

/* A name moves, and the Envoy keeps its connections to the old address: which, why, and until when. */
const graceMs = 500;
/** Where Envoy drains by itself: longer than its own DNS refresh (1 s) takes on a loaded machine. */
const drainGraceMs = 3000;
/** The linger: what Envoy may keep back, and so how well the clocks can be compared. */
const uncertaintyMs = 1001;
const everything = new Cleanup();
let dns: DnsServer;
let otlp: OtlpReceiver;

beforeAll(async () => {
  dns = everything.use(await DnsServer.start());
  otlp = everything.use(await startOtlpReceiver());
});
afterAll(() => everything.run());

const playing = (options: Parameters<typeof setUpOwnMove>[2], play: (move: OwnMove) => Promise<void>) =>
  cleaned(async (cleanup) => play(await setUpOwnMove(cleanup, dns, options)));

const pinOf = ({ span }: ReceivedExchange) => span.attributes['sidelight.pin'];

/** Moves the name under traffic and waits until every connection to the old address is stale. */
async function moveUntilStale(move: OwnMove) {
  const { failures, stop } = await move.traffic();
  const held = move.upstreams.openConnections(oldIp);
  move.answer(newIp);
  await until('stale pins', async () => (await move.connections('stale')) === held);
  const { pins } = await move.pins();
  return { failures, stop, held, leftAtMs: pins[0]?.leftAtMs ?? Number.NaN };
}

/** An Envoy that closes its connections by itself: nothing is ever stale, and all of it is over in a while. */
async function expectDrained(move: OwnMove): Promise<void> {
  const { failures, stop } = await move.traffic();
  move.answer(newIp);
  await until('the drain', () => move.events('endpoint.cleared').length > 0);
  await stop();
  expect(move.upstreams.requests(newIp)).toBeGreaterThan(0);
  expect(move.upstreams.openConnections(oldIp)).toBe(0);
  expect(failures()).toBe(0);
  expect(await move.stale()).toEqual(nothing);
}

describe.concurrent('A3, A5 LOGICAL_DNS', () => {
  it(
    'stale from the first request after the grace, until the server closes the connections',
    cleaned(async (cleanup) => {
      const name = 'a3';
      const rule = { graceMs };
      const to = { endpoint: otlp.endpoint };
      const move = await setUpOwnMove(cleanup, dns, {
        name,
        kind: 'LOGICAL_DNS',
        runtime: newDns(false),
        rule,
        otlp: to,
      });
      const { failures, stop, held, leftAtMs } = await moveUntilStale(move);
      const { pins } = await move.pins();
      for (const pin of pins) {
        const endpoint = `${oldIp}:${move.upstreams.port}`;
        expect(pin).toMatchObject({ pin: 'stale', endpoint, layer: 'http', leftAtMs, source: 'dns' });
        expect(pin.connectionId).toMatch(/^[1-9]\d*$/);
        expect(pin.ageMs).toBeGreaterThan(Date.now() - leftAtMs);
        // Nobody told what kind of cluster it is.
        expect(pin.advice?.reason).toBe('pool_kept');
        expect(pin.contradiction).toBeUndefined();
      }
      const metric = (metricName: string, labels = {}) =>
        move.sidelight.metric(metricName, { cluster: name, ...labels });
      expect(await metric('sidelight_pin_bytes_total')).toBeGreaterThan(0);
      expect(await metric('sidelight_pin_oldest_seconds', { pin: 'stale' })).toBeGreaterThan(1);
      // Envoy's own list contradicts the bytes.
      await until('Envoy to list the new address alone', async () => (await move.listedByEnvoy()).join() === newIp);
      expect(await move.envoy.admin.stat('cluster.a3.membership_change')).toBe(1);
      expect(move.upstreams.requests(newIp)).toBe(0);

      const inForce = leftAtMs + graceMs + uncertaintyMs;
      await otlp.exchanges((span) => span.service === name && span.startMs > inForce, 5);
      const all = await otlp.exchanges((span) => span.service === name, 1);
      const begunFrom = (fromMs: number, toMs = Number.POSITIVE_INFINITY) =>
        new Set(all.filter(({ span }) => span.startMs > fromMs && span.endMs < toMs).map(pinOf));
      expect(begunFrom(leftAtMs - uncertaintyMs, leftAtMs)).toEqual(new Set(['current']));
      // On a loaded machine half a second may pass without any.
      expect([...begunFrom(leftAtMs + 10, leftAtMs + graceMs)].filter((pin) => pin !== 'draining')).toEqual([]);
      expect(await move.requests('draining')).toBeGreaterThan(0);
      expect(begunFrom(inForce)).toEqual(new Set(['stale']));

      const cycledMs = Date.now();
      move.upstreams.handle(() => ({ kind: 'respond', status: 200, headers: { connection: 'close' } }), oldIp);
      await until('the pins to clear', async () => (await move.pins()).cleared.length === held);
      await until('requests on the new address', () => move.upstreams.requests(newIp) > 0);
      await stop();
      const { cleared } = await move.pins();
      for (const { pin, how, by, lastUsedMs, clearedMs } of cleared) {
        expect([pin, how, by]).toEqual(['stale', 'closed', 'server']);
        expect(Math.abs(lastUsedMs - cycledMs)).toBeLessThan(1000);
        expect(clearedMs).toBeGreaterThanOrEqual(lastUsedMs);
      }
      const lastUsedMs = Math.max(...cleared.map((pin) => pin.lastUsedMs));
      expect(move.events('endpoint.cleared')).toMatchObject([{ leftAtMs, lastUsedMs, pins: held, closed: held }]);
      // The curve has ended, and is kept.
      const { drain, connections, holders } = (await move.endpoint(oldIp)) ?? {};
      expect(drain?.lastUsedMs).toBe(lastUsedMs);
      expect([connections, holders]).toEqual([{ open: 0, idle: 0, unseen: 0 }, []]);
      const series = (await move.sidelight.get('/metrics'))
        .split('\n')
        .filter((line) => /^sidelight_pin(?:s|_oldest_seconds)\{/.test(line) && line.includes(oldIp));
      expect(series).toEqual([]);
      expect(failures()).toBe(0);
    }),
  );

  it(
    "Envoy's own list contradicts the bytes, and says why; an idle connection goes without a word",
    cleaned(async (cleanup) => {
      const move = await setUpOwnMove(cleanup, dns, {
        name: 'a3-asked',
        kind: 'LOGICAL_DNS',
        runtime: newDns(false),
        rule: { graceMs },
        asksEnvoy: true,
        upstreams: { keepAliveMs: 1000 },
      });
      const { failures, stop, held, leftAtMs } = await moveUntilStale(move);
      await until('the contradiction', async () => {
        const { pins } = await move.pins();
        return pins.every(({ contradiction }) => contradiction === 'proxy_not_listing');
      });
      for (const { advice } of (await move.pins()).pins) {
        expect(advice?.reason).toBe('logical_dns_pool');
        expect(advice?.changes.join()).toContain('STRICT_DNS');
      }
      const { port } = move.upstreams;
      expect((await move.cluster()).proxies).toMatchObject([
        {
          nodeId: 'a3-asked',
          type: 'LOGICAL_DNS',
          newDnsImplementation: false,
          // The old connections, as if they were the new address's.
          hosts: [{ endpoint: `${newIp}:${port}`, activeConnections: held }],
        },
      ]);
      await stop();
      await until('the keep-alive timeout', () => move.upstreams.openConnections(oldIp) === 0);
      await until('the pins to clear', async () => (await move.pins()).cleared.length === held);
      for (const { pin, how, by } of (await move.pins()).cleared) {
        expect(pin).toBe('stale');
        expect(['quiet', 'gone']).toContain(how);
        expect(by).toBeUndefined();
      }
      expect(move.events('endpoint.cleared')).toMatchObject([{ leftAtMs, pins: held }]);
      const after = await move.traffic();
      await until('requests on the new address', () => move.upstreams.requests(newIp) > 0);
      await after.stop();
      expect(failures() + after.failures()).toBe(0);
    }),
  );

  it(
    'by the runtime flag it drains: nothing is ever stale',
    playing(
      { name: 'a3-new', kind: 'LOGICAL_DNS', runtime: newDns(true), rule: { graceMs: drainGraceMs }, asksEnvoy: true },
      async (move) => {
        await expectDrained(move);
        expect((await move.cluster()).proxies[0]?.newDnsImplementation).toBe(true);
      },
    ),
  );

  it(
    'without the flag it does what this Envoy does by itself',
    playing({ name: 'a3-unset', kind: 'LOGICAL_DNS', runtime: {}, rule: { graceMs: drainGraceMs } }, async (move) => {
      const { logicalDnsDrains } = await envoyFacts(move.envoy);
      if (logicalDnsDrains) return expectDrained(move);
      const { stop } = await moveUntilStale(move);
      await stop();
      expect(move.upstreams.requests(newIp)).toBe(0);
    }),
  );
});

describe.concurrent.each(bothKindsOfDns)("A6 LOGICAL_DNS, no address, Envoy's %s DNS", (kindOfDns, runtime) => {
  const name = `a6-${kindOfDns}`;
  const rule = { graceMs, expectPin: true };
  it(
    'the old connections go on, stale once two answers said so; where pins are expected they are marked',
    playing({ name, kind: 'LOGICAL_DNS', runtime, rule, asksEnvoy: true }, async (move) => {
      const { client, failures, stop } = await move.traffic();
      move.answerNothing();
      await until('stale pins', async () => (await move.connections('stale')) === 2);
      // Neither kind takes "no address" for an answer: the list itself is old.
      await until('the contradiction', async () =>
        (await move.pins()).pins.every(({ contradiction }) => contradiction === 'proxy_still_lists'),
      );
      for (const { advice } of (await move.pins()).pins) expect(advice?.reason).toBe('old_proxy_list');
      await until('stale requests', async () => (await move.requests('stale')) > 0);
      const metric = (metricName: string, labels = {}) =>
        move.sidelight.metric(metricName, { cluster: name, ...labels });
      expect(await metric('sidelight_pins', { pin: 'stale', expected: 'true' })).toBe(2);
      await stop();
      expect(failures()).toBe(0);
      expect(await metric('sidelight_endpoint_listed')).toBe(0);
      await until('every request', async () => (await move.requests()) === client.log.length);
      const stale = await move.requests('stale');
      expect(await metric('sidelight_pinned_requests_total', { pin: 'stale', expected: 'true' })).toBe(stale);
      for (const event of ['pin.opened', 'pin.stale'])
        expect(move.events(event)).toMatchObject([{ expected: true }, { expected: true }]);
    }),
  );
});

const activeChecks = { interval: '0.2s', timeout: '1s', healthy_threshold: 1, unhealthy_threshold: 2 };

describe.concurrent.each(bothKindsOfDns)("A9, Envoy's %s DNS", (kindOfDns, runtime) => {
  const name = `a9-${kindOfDns}`;
  const extra = { health_checks: [{ http_health_check: { path: '/' }, ...activeChecks }] };
  it(
    'Envoy keeps a removed host while it passes its health check: stale by our own source, and why',
    playing({ name, runtime, extra, rule: { graceMs }, asksEnvoy: true }, async (move) => {
      const { stop } = await move.traffic();
      move.answer(newIp);
      await until('a stale pin', async () => (await move.connections('stale')) > 0);
      const old = (await move.envoy.admin.hosts(name)).find(({ address }) => address.startsWith(oldIp));
      expect(old?.healthy).toBe(true);
      const endpoint = `${oldIp}:${move.upstreams.port}`;
      await until('the reason', async () => {
        const { pins } = await move.pins();
        return pins.some(({ pin, advice }) => pin === 'stale' && advice?.reason === 'health_check_hold');
      });
      await stop();
      const { pins } = await move.pins();
      expect(pins[0]).toMatchObject({ pin: 'stale', endpoint });
      // It keeps the host and does not claim that it belongs there.
      expect(pins[0]?.contradiction).toBeUndefined();
      expect(pins[0]?.advice?.changes.join()).toContain('ignore_health_on_host_removal');
      const { proxies } = await move.cluster();
      expect(proxies[0]?.hosts).toContainEqual(
        expect.objectContaining({ endpoint, healthy: true, pendingRemoval: true }),
      );
    }),
  );
});
