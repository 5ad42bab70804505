import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { asksFor, type Move, type MoveOptions, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { type OtlpReceiver, type ReceivedExchange, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { pinsOf } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/*
 * A name moves from one address to another while a client keeps sending over a real Envoy. The ids are those of the
 * runs in real meshes that these are the short form of.
 */
const graceMs = 500;
/** Where Envoy drains by itself: longer than its own DNS refresh (1 s) takes on a loaded machine. */
const drainGraceMs = 3000;
/** The linger: what Envoy may keep back, and so how well the clocks can be compared. */
const uncertaintyMs = 1001;
const everything = new Cleanup();
let dns: DnsServer;
let otlp: OtlpReceiver;
let sidelight: TestSidelight;

beforeAll(async () => {
  dns = everything.use(await DnsServer.start());
  otlp = everything.use(await startOtlpReceiver());
  const { clusters = [], ...config } = asksFor(['a3', 'a6-strict', 'a6-logical', 'a9'], dns, graceMs);
  clusters.push(...(asksFor(['a1', 'a2'], dns, drainGraceMs).clusters ?? []));
  // Grace of 10 s, as by default.
  clusters.push(...(asksFor(['a7', 'a8'], dns).clusters ?? []));
  sidelight = everything.use(await startTestSidelight({ ...config, clusters, otlp: { endpoint: otlp.endpoint } }));
});
afterAll(() => everything.run());

function playing(options: MoveOptions, play: (move: Move) => Promise<void>): () => Promise<void> {
  return async () => {
    const cleanup = new Cleanup();
    try {
      await play(await setUpMove(cleanup, { dns, sidelight }, options));
    } finally {
      await cleanup.run();
    }
  };
}

async function nothingStale(move: Move): Promise<void> {
  expect(await move.requests('stale')).toBe(0);
  expect(await move.requests('stale_view')).toBe(0);
}

const pinOf = ({ span }: ReceivedExchange) => span.attributes['sidelight.pin'];

describe.concurrent('A1', () => {
  it(
    'STRICT_DNS, idle pool: current throughout, one change with its time, nothing stale',
    playing({ name: 'a1' }, async (move) => {
      const { client, failures, stop } = await move.traffic();
      move.answer(newIp);
      await until('requests on the new address', () => move.upstreams.requests(newIp) > 0);
      await sleep(drainGraceMs + 2 * uncertaintyMs);
      await stop();
      await until('every request', async () => (await move.requests()) === client.log.length);
      expect(failures()).toBe(0);
      expect(await move.envoy.admin.stat('cluster.a1.upstream_cx_destroy_local')).toBeGreaterThan(0);
      const changes = sidelight.log.filter(
        ({ event, fields }) => event === 'discovery.changed' && fields['cluster'] === 'a1',
      );
      expect(changes.map(({ fields }) => fields)).toMatchObject([
        { added: [newIp], removed: [oldIp], atMs: expect.any(Number) },
      ]);
      await nothingStale(move);
    }),
  );
});

describe.concurrent('A2', () => {
  it(
    'STRICT_DNS, a long response in flight: draining at its end, never stale',
    playing({ name: 'a2' }, async (move) => {
      const { stop } = await move.traffic();
      const client = http1Client(move.envoy.port('http'));
      const long = client.request('/trickle/4000');
      await sleep(300);
      move.answer(newIp);
      await until('requests on the new address', () => move.upstreams.requests(newIp) > 0);
      expect(await long).toMatchObject({ status: 200, error: undefined });
      await stop();
      client.close();
      const isLong = (path: unknown) => path === '/trickle/4000';
      const [exchange] = await otlp.exchanges(
        (span) => span.service === 'a2' && isLong(span.attributes['url.path']),
        1,
      );
      expect(exchange?.span.attributes).toMatchObject({ 'sidelight.outcome': 'ok', 'sidelight.pin': 'draining' });
      expect(exchange?.attempts[0]?.attributes['network.peer.address']).toBe(oldIp);
      await nothingStale(move);
    }),
  );
});

describe.concurrent('A3, A5', () => {
  it(
    'LOGICAL_DNS: stale from the first request after the grace, until the connections are cycled',
    playing({ name: 'a3', kind: 'LOGICAL_DNS' }, async (move) => {
      const { failures, stop } = await move.traffic();
      move.answer(newIp);
      await until('a stale pin', async () => (await move.connections('stale')) === 2);
      const { pins } = await pinsOf(sidelight, 'a3');
      const leftAtMs = pins[0]?.leftAtMs ?? Number.NaN;
      for (const pin of pins) {
        const endpoint = `${oldIp}:${move.upstreams.port}`;
        expect(pin).toMatchObject({ pin: 'stale', endpoint, layer: 'http', leftAtMs, source: 'dns' });
        expect(pin.connectionId).toMatch(/^[1-9]\d*$/);
        expect(pin.ageMs).toBeGreaterThan(Date.now() - leftAtMs);
      }
      expect(await sidelight.metric('sidelight_pin_bytes_total', { cluster: 'a3' })).toBeGreaterThan(0);
      expect(await sidelight.metric('sidelight_pin_oldest_seconds', { cluster: 'a3', pin: 'stale' })).toBeGreaterThan(
        1,
      );
      // Envoy's own list contradicts the bytes.
      expect(await move.listedByEnvoy()).toEqual([newIp]);
      expect(await move.envoy.admin.stat('cluster.a3.membership_change')).toBe(1);
      expect(move.upstreams.requests(newIp)).toBe(0);

      const inForce = leftAtMs + graceMs + uncertaintyMs;
      await otlp.exchanges((span) => span.service === 'a3' && span.startMs > inForce, 5);
      const all = await otlp.exchanges((span) => span.service === 'a3', 1);
      const begunFrom = (fromMs: number, toMs = Number.POSITIVE_INFINITY) =>
        new Set(all.filter(({ span }) => span.startMs > fromMs && span.endMs < toMs).map(pinOf));
      expect(begunFrom(leftAtMs - uncertaintyMs, leftAtMs)).toEqual(new Set(['current']));
      expect(begunFrom(leftAtMs + 10, leftAtMs + graceMs)).toEqual(new Set(['draining']));
      expect(begunFrom(inForce)).toEqual(new Set(['stale']));

      const cycledMs = Date.now();
      move.upstreams.cycle(oldIp);
      await until('the pins to clear', async () => (await pinsOf(sidelight, 'a3')).cleared.length === 2);
      await stop();
      for (const { pin, how, lastUsedMs, clearedMs } of (await pinsOf(sidelight, 'a3')).cleared) {
        expect(pin).toBe('stale');
        expect(Math.abs(lastUsedMs - cycledMs)).toBeLessThan(500);
        // A request that was cut says so at once; that nothing uses a connection any more is known after a quiet time.
        expect(clearedMs).toBeGreaterThanOrEqual(lastUsedMs + (how === 'quiet' ? 2000 : 0));
      }
      expect(move.upstreams.requests(newIp)).toBeGreaterThan(0);
      const series = (await sidelight.get('/metrics'))
        .split('\n')
        .filter((line) => /^sidelight_pin(?:s|_oldest_seconds)\{/.test(line));
      expect(series.filter((line) => line.includes('"a3"') && line.includes(oldIp))).toEqual([]);
      expect(failures()).toBeLessThanOrEqual(2);
    }),
  );
});

describe.concurrent('A6', () => {
  it(
    'STRICT_DNS, no address: every request is a local reply, UH',
    playing({ name: 'a6-strict' }, async (move) => {
      const { client, stop } = await move.traffic();
      move.answerNothing();
      await until('a 503', () => client.log.at(-1)?.status === 503);
      await sleep(500);
      await stop();
      const bad = client.log.filter(({ status }) => status === 503).length;
      const counted = (labels = {}) =>
        sidelight.metric('sidelight_requests_total', { cluster: 'a6-strict', ...labels });
      await until('every request', async () => (await counted()) === client.log.length);
      expect(await counted({ outcome: 'local', local_result: 'server_error' })).toBe(bad);
      const isLocal = (outcome: unknown) => outcome === 'local';
      const locals = await otlp.exchanges(
        (span) => span.service === 'a6-strict' && isLocal(span.attributes['sidelight.outcome']),
        bad,
      );
      for (const { span } of locals) expect(span.attributes['sidelight.flags']).toBe('UH');
      await nothingStale(move);
    }),
  );

  it(
    'LOGICAL_DNS, no address: the old connections go on, stale once two answers said so',
    playing({ name: 'a6-logical', kind: 'LOGICAL_DNS' }, async (move) => {
      const { failures, stop } = await move.traffic();
      move.answerNothing();
      await until('a stale pin', async () => (await move.connections('stale')) > 0);
      await stop();
      expect(failures()).toBe(0);
      expect(await sidelight.metric('sidelight_endpoint_listed', { cluster: 'a6-logical' })).toBe(0);
    }),
  );
});

describe.concurrent('A7', () => {
  it(
    'DNS flaps: the churn is counted, nothing is stale inside the grace',
    playing({ name: 'a7' }, async (move) => {
      const { client, failures, stop } = await move.traffic();
      for (let flip = 1; flip <= 6; flip += 1) {
        move.answer(flip % 2 === 1 ? newIp : oldIp);
        await until(`flip ${flip}`, async () => (await move.changes()) >= 2 * flip);
        await sleep(700);
      }
      await stop();
      await until('every request', async () => (await move.requests()) === client.log.length);
      expect(failures()).toBe(0);
      expect(await move.changes()).toBe(12);
      expect(await move.envoy.admin.stat('cluster.a7.upstream_cx_destroy_local')).toBeGreaterThan(2);
      await nothingStale(move);
    }),
  );
});

const eight = Array.from({ length: 8 }, (_, index) => `127.0.0.${21 + index}`);

describe.concurrent('A8', () => {
  it(
    'each answer is another two of eight addresses: never stale',
    playing({ name: 'a8', ips: [oldIp, ...eight] }, async (move) => {
      dns.set('a8.test', { kind: 'rotating', addresses: eight, ttlSeconds: 1, size: 2 });
      const { client, failures, stop } = await move.traffic();
      await sleep(6000);
      await stop();
      await until('every request', async () => (await move.requests()) === client.log.length);
      expect(failures()).toBe(0);
      expect(eight.filter((ip) => move.upstreams.requests(ip) > 0).length).toBeGreaterThan(3);
      expect(await move.changes()).toBeGreaterThan(12);
      await nothingStale(move);
    }),
  );
});

const activeChecks = { interval: '0.2s', timeout: '1s', healthy_threshold: 1, unhealthy_threshold: 2 };

describe.concurrent('A9', () => {
  const extra = { health_checks: [{ http_health_check: { path: '/' }, ...activeChecks }] };
  it(
    'Envoy keeps a removed host while it passes its health check: stale by our own source',
    playing({ name: 'a9', extra }, async (move) => {
      const { stop } = await move.traffic();
      move.answer(newIp);
      await until('a stale pin', async () => (await move.connections('stale')) > 0);
      const old = (await move.envoy.admin.hosts('a9')).find(({ address }) => address.startsWith(oldIp));
      await stop();
      expect(old?.healthy).toBe(true);
      const { pins } = await pinsOf(sidelight, 'a9');
      expect(pins[0]).toMatchObject({ pin: 'stale', endpoint: `${oldIp}:${move.upstreams.port}` });
    }),
  );
});
