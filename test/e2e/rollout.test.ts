import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { istioRetries, manyRetries } from '../../src/lab/istio-defaults.ts';
import { counts } from '../support/counts.ts';
import { bothKindsOfDns, nothing, setUpOwnMove } from '../support/moving-name.ts';
import { cleaned, keepSending } from '../support/reporting.ts';
import { until } from '../support/until.ts';

/* C1: the three replicas of a service are replaced by three others, one after the other, under traffic. */
const everything = new Cleanup();
let dns: DnsServer;

beforeAll(async () => {
  dns = everything.use(await DnsServer.start());
});
afterAll(() => everything.run());

const before = ['127.0.0.14', '127.0.0.15', '127.0.0.16'];
const after = ['127.0.0.24', '127.0.0.25', '127.0.0.26'];

it.concurrent.each(bothKindsOfDns)(
  "C1 masked and surfaced side by side, and the pins of the old replicas come and go (Envoy's %s DNS)",
  async (kindOfDns, runtime) => {
    await cleaned(async (cleanup) => {
      const name = `c1-${kindOfDns}`;
      const move = await setUpOwnMove(cleanup, dns, {
        name,
        runtime,
        ips: [...before, ...after],
        first: before,
        // Longer than Envoy's own DNS refresh (1 s) takes on a loaded machine.
        rule: { graceMs: 3000 },
        extra: manyRetries,
        action: { retry_policy: istioRetries },
      });
      const { upstreams, envoy } = move;
      const { client, failures, stop } = keepSending(cleanup, envoy, { concurrency: 4, pauseMs: 10 });
      await until('current requests', async () => (await move.requests('current')) > 0);
      let refused = 0;
      for (const [i, ip] of before.entries()) {
        // Going down it answers 503, which Istio's default does not retry; then its port is closed, then it is taken out.
        upstreams.handle(() => ({ kind: 'respond', status: (refused += 1) > 0 ? 503 : 200 }), ip);
        await sleep(300);
        await upstreams.down(ip);
        const listed = [...after.slice(0, i + 1), ...before.slice(i + 1)];
        move.answer(...listed);
        await until('Envoy to follow', async () => (await move.listedByEnvoy()).every((listedIp) => listedIp !== ip));
        await until('requests on the new one', () => upstreams.requests(after[i]) > 0);
        await until('Sidelight to have heard of it', async () => (await move.changes()) === 2 * (i + 1));
      }
      const idsOf = (event: string) => new Set(move.events(event).map(({ connectionId }) => connectionId));
      await until('the pins to be over', async () => (await move.connections('draining')) === 0);
      await until('their ends', () => idsOf('pin.cleared').size === idsOf('pin.opened').size);
      await stop();

      const seen = await counts(move.sidelight, { cluster: name }, client.log.length);
      const { exhausted = 0 } = seen.outcomes;
      const masked = await envoy.admin.stat(`cluster.${name}.upstream_rq_retry_success`);
      const failed = failures() - exhausted;
      expect([masked, failed].every((count) => count > 0)).toBe(true);
      expect(seen.outcomes).toEqual({
        ok: client.log.length - masked - failures(),
        masked,
        failed,
        ...(exhausted ? { exhausted } : {}),
      });
      const by = (cause: string) => seen.metric('sidelight_attempts_total', { cause });
      expect(await by('status_5xx')).toBe(refused);
      expect(await by('connect_failure')).toBe(await envoy.admin.stat(`cluster.${name}.upstream_cx_connect_fail`));
      expect(client.log.filter(({ status }) => status === 503).length).toBeGreaterThanOrEqual(refused);

      expect(await move.stale()).toEqual(nothing);
      expect(idsOf('pin.cleared')).toEqual(idsOf('pin.opened'));
      const old = before.map((ip) => `${ip}:${upstreams.port}`);
      const drained = move.events('endpoint.cleared').map(({ endpoint }) => endpoint);
      expect(drained.length).toBeGreaterThan(0);
      expect(old).toEqual(expect.arrayContaining(drained));
      const { flips } = await move.cluster();
      expect(flips.map(({ added, removed }) => [added, removed])).toEqual(before.map((ip, i) => [[after[i]], [ip]]));
      expect(flips.reduce((sum, flip) => sum + flip.cleared, 0)).toBe(drained.length);
    })();
  },
);
