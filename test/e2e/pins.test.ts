import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { pins } from '../../src/model/verdict.ts';
import {
  bothKindsOfDns,
  type MoveOptions,
  newIp,
  nothing,
  type OwnMove,
  oldIp,
  setUpOwnMove,
} from '../support/moving-name.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { cleaned, newDns } from '../support/reporting.ts';
import { until } from '../support/until.ts';

/*
 * A name moves from one address to another while a client keeps sending over a real Envoy that follows it. The ids are
 * those of the runs in real meshes that these are the short form of.
 */
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

/** Sleeps until what is not stale by then never will be. */
async function passGrace(leftAtMs: unknown): Promise<void> {
  await sleep(Math.max(0, Number(leftAtMs) + drainGraceMs + 2 * uncertaintyMs - Date.now()));
}

describe.concurrent.each(bothKindsOfDns)("Envoy's %s DNS", (kindOfDns, runtime) => {
  const named = (id: string, more: Omit<MoveOptions, 'name'> = {}) => ({
    name: `${id}-${kindOfDns}`,
    runtime,
    ...more,
  });

  it(
    'A1 STRICT_DNS, idle pool: one drain with its times, pins that come and go, nothing stale',
    playing({ ...named('a1'), rule: { graceMs: drainGraceMs } }, async (move) => {
      const { client, failures, stop } = await move.traffic();
      const endpoint = `${oldIp}:${move.upstreams.port}`;
      const held = move.upstreams.openConnections(oldIp);
      move.answer(newIp);
      await until('requests on the new address', () => move.upstreams.requests(newIp) > 0);
      await until('the drain', () => move.events('endpoint.cleared').length > 0);
      const changes = move.events('discovery.changed');
      expect(changes).toMatchObject([{ added: [newIp], removed: [oldIp], atMs: expect.any(Number) }]);
      const leftAtMs = changes[0]?.['atMs'];
      await passGrace(leftAtMs);
      await stop();
      await until('every request', async () => (await move.requests()) === client.log.length);
      expect(failures()).toBe(0);
      expect(await move.stale()).toEqual(nothing);
      expect((await move.requests('current')) + (await move.requests('draining'))).toBe(client.log.length);
      expect(await move.envoy.admin.stat(`cluster.a1-${kindOfDns}.upstream_cx_destroy_local`)).toBe(held);

      const drained = move.events('endpoint.cleared');
      // Envoy logs nothing when it closes an idle connection.
      expect(drained).toMatchObject([{ endpoint, leftAtMs, pins: held, closed: 0 }]);
      const sinceLeftMs = Number(drained[0]?.['lastUsedMs']) - Number(leftAtMs);
      expect(sinceLeftMs).toBeGreaterThanOrEqual(0);
      expect(sinceLeftMs).toBeLessThan(drainGraceMs);
      const { flips } = await move.cluster();
      expect(flips).toMatchObject([{ atMs: leftAtMs, added: [newIp], removed: [oldIp], connectionsLeft: held }]);
      expect(flips[0]).toMatchObject({ cleared: 1, lastUsedMs: drained[0]?.['lastUsedMs'] });
      const idsOf = (event: string) => new Set(move.events(event).map(({ connectionId }) => connectionId));
      expect(idsOf('pin.opened').size).toBe(held);
      expect(idsOf('pin.cleared')).toEqual(idsOf('pin.opened'));
      const { cleared } = await move.pins();
      expect(cleared).toHaveLength(held);
      for (const pin of cleared) expect(pin).toMatchObject({ pin: 'draining', how: 'quiet', leftAtMs });
      expect((await move.endpoint(oldIp))?.drain?.lastUsedMs ?? leftAtMs).toBe(drained[0]?.['lastUsedMs']);
    }),
  );

  it(
    'A6 STRICT_DNS, no address: every request is a local reply, UH',
    cleaned(async (cleanup) => {
      const name = `a6-strict-${kindOfDns}`;
      const move = await setUpOwnMove(cleanup, dns, { name, runtime, otlp: { endpoint: otlp.endpoint } });
      const { client, stop } = await move.traffic();
      move.answerNothing();
      await until('a 503', () => client.log.at(-1)?.status === 503);
      await sleep(500);
      await stop();
      const bad = client.log.filter(({ status }) => status === 503).length;
      const counted = (labels = {}) => move.sidelight.metric('sidelight_requests_total', { cluster: name, ...labels });
      await until('every request', async () => (await counted()) === client.log.length);
      expect(await counted({ outcome: 'local', local_result: 'server_error' })).toBe(bad);
      const isLocal = (outcome: unknown) => outcome === 'local';
      const locals = await otlp.exchanges(
        (span) => span.service === name && isLocal(span.attributes['sidelight.outcome']),
        bad,
      );
      for (const { span } of locals) expect(span.attributes['sidelight.flags']).toBe('UH');
      expect(await move.stale()).toEqual(nothing);
    }),
  );

  it(
    'A7 DNS flaps: the churn is counted, nothing is stale inside the grace',
    // Grace of 10 s, as by default.
    playing(named('a7'), async (move) => {
      const { client, failures, stop } = await move.traffic();
      const before = move.upstreams.connections();
      for (let flip = 1; flip <= 6; flip += 1) {
        move.answer(flip % 2 === 1 ? newIp : oldIp);
        await until(`flip ${flip}`, async () => (await move.changes()) >= 2 * flip);
        await sleep(700);
      }
      await stop();
      await until('every request', async () => (await move.requests()) === client.log.length);
      expect(failures()).toBe(0);
      expect(await move.changes()).toBe(12);
      const destroyed = await move.envoy.admin.stat(`cluster.a7-${kindOfDns}.upstream_cx_destroy_local`);
      expect(destroyed).toBeGreaterThan(2);
      expect(await move.stale()).toEqual(nothing);
      const { flips } = await move.cluster();
      expect(flips.map(({ added, removed }) => [...added, ...removed])).toEqual(
        [1, 2, 3, 4, 5, 6].map((flip) => (flip % 2 === 1 ? [newIp, oldIp] : [oldIp, newIp])),
      );
      // Envoy may not have followed each of them.
      expect(flips.reduce((sum, { connectionsLeft }) => sum + connectionsLeft, 0)).toBeGreaterThan(2);
      const opened = flips.reduce((sum, { connectionsOpened }) => sum + connectionsOpened, 0);
      expect(opened).toBeGreaterThan(2);
      // One that Envoy opened before we saw the change is not of that change.
      expect(opened).toBeLessThanOrEqual(move.upstreams.connections() - before);
    }),
  );
});

const eight = Array.from({ length: 8 }, (_, index) => `127.0.0.${21 + index}`);

describe.concurrent('A8, each answer is another two of eight addresses', () => {
  it.each([
    ['with a window none leaves', 8000, 'old', newDns(false)],
    ['with a window none leaves', 8000, 'new', newDns(true)],
    ['without one never stale', undefined, 'new', newDns(true)],
  ])("%s (window %s ms, Envoy's %s DNS)", async (_case, windowMs, kindOfDns, runtime) => {
    const cleanup = new Cleanup();
    try {
      const name = `a8-${kindOfDns}-${windowMs ?? 'none'}`;
      const rule = windowMs === undefined ? {} : { windowMs };
      const move = await setUpOwnMove(cleanup, dns, { name, runtime, ips: [oldIp, ...eight], rule });
      dns.set(`${name}.test`, { kind: 'rotating', addresses: eight, ttlSeconds: 1, size: 2 });
      const { client, failures, stop } = await move.traffic();
      // What was opened before the first answer is not judged.
      await until('every address to be known', async () => {
        const { listed, left } = await move.cluster();
        return eight.every((ip) => [...listed, ...left].some(({ endpoint }) => endpoint === ip));
      });
      await sleep(2 * uncertaintyMs);
      const pinned = async () =>
        Object.fromEntries(await Promise.all(pins.map(async (pin) => [pin, await move.requests(pin)] as const)));
      const before = await pinned();
      // Long enough for every address to be left out again and again.
      await sleep(4000);
      await stop();
      await until('every request', async () => (await move.requests()) === client.log.length);
      expect(failures()).toBe(0);
      expect(eight.filter((ip) => move.upstreams.requests(ip) > 0).length).toBeGreaterThan(3);
      expect(await move.changes()).toBeGreaterThan(12);
      expect(await move.stale()).toEqual(nothing);
      if (windowMs === undefined) return;
      const { left } = await move.cluster();
      expect(left.filter(({ endpoint }) => endpoint !== oldIp)).toEqual([]);
      const after = await pinned();
      const more = pins.filter((pin) => (after[pin] ?? 0) > (before[pin] ?? 0));
      expect(more).toContain('current');
      expect(['current', 'unlisted']).toEqual(expect.arrayContaining(more));
    } finally {
      await cleanup.run();
    }
  });
});
