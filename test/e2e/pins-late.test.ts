import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { newIp, nothing, oldIp, setUpOwnMove } from '../support/moving-name.ts';
import { cleaned } from '../support/reporting.ts';
import { until } from '../support/until.ts';

/* An Envoy that asks DNS seldom goes on opening connections to an address that has left, within the answer's TTL. */
const everything = new Cleanup();
let dns: DnsServer;

beforeAll(async () => {
  dns = everything.use(await DnsServer.start());
});
afterAll(() => everything.run());

const ttlSeconds = 60;
/** Of Sidelight's own questions. */
const refreshMs = 500;
const seldom = { dns_refresh_rate: '10s', respect_dns_ttl: false };

async function setUpLate(cleanup: Cleanup, name: string, rule: { graceMs?: number }) {
  const move = await setUpOwnMove(cleanup, dns, { name, rule, ttlSeconds, extra: seldom });
  // Each request opens a connection of its own.
  move.upstreams.handle(() => ({ kind: 'respond', status: 200, headers: { connection: 'close' } }));
  const { failures, stop } = await move.traffic();
  move.answer(newIp);
  await until('the change', async () => (await move.changes()) === 2);
  return { move, failures, stop };
}

describe.concurrent('TTL 60 s, and an Envoy that refreshes late', () => {
  it(
    'no false stale_view: the grace is that of the TTL',
    cleaned(async (cleanup) => {
      const { move, failures, stop } = await setUpLate(cleanup, 'late', {});
      expect((await move.cluster()).graceMs).toBe(ttlSeconds * 1000 + refreshMs);
      await until('Envoy to follow', () => move.upstreams.requests(newIp) > 0);
      await stop();
      const { leftAtMs = Number.NaN, drain } = (await move.endpoint(oldIp)) ?? {};
      // It went on for long enough: by a shorter grace these would be stale_view, as below.
      expect((drain?.lastUsedMs ?? 0) - leftAtMs).toBeGreaterThan(2000);
      expect(await move.requests('draining')).toBeGreaterThan(0);
      expect(await move.stale()).toEqual(nothing);
      expect(failures()).toBe(0);
    }),
  );

  it(
    'with a grace that is too short for it, it is stale_view: connections that were opened when no old answer could hold any more',
    cleaned(async (cleanup) => {
      const { move, stop } = await setUpLate(cleanup, 'late-short', { graceMs: 500 });
      await until('stale_view requests', async () => (await move.requests('stale_view')) > 0);
      await until('Envoy to follow', () => move.upstreams.requests(newIp) > 0);
      await stop();
      expect(await move.requests('stale')).toBe(0);
    }),
  );
});
