import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { openBrowser, openPage } from '../support/browser.ts';
import { answered, logClient } from '../support/log-client.ts';
import { newIp, oldIp, setUpOwnMove } from '../support/moving-name.ts';
import { cleaned, routeTo, startReporter } from '../support/reporting.ts';
import { runDrained } from '../support/run-drained.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* The live page in a real Chromium while things happen: a flip, a restart, a stranger's names, a thousand clusters. */
const everything = new Cleanup();
let dns: DnsServer;

beforeAll(async () => {
  dns = everything.use(await DnsServer.start());
});
afterAll(() => everything.run());

/** When the board first has this endpoint, epoch ms, by the clock of this machine, which is the browser's too. */
const watchForCard = (endpoint: string) => `
  window.cardAtMs = new Promise((resolve) => {
    const look = () => document.querySelector('[data-endpoint="${endpoint}"]') && resolve(Date.now());
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  }); undefined`;

describe('the page', () => {
  it('shows a flip on the board within two seconds, its curve while it falls, and the end of it as sidelight drained has it', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const quiet = { quietForMs: 3000 };
      const rule = { graceMs: 1000, idleTimeoutMs: 5000 };
      const move = await setUpOwnMove(cleanup, dns, { name: 'page-flip', kind: 'LOGICAL_DNS', rule, page: quiet });
      const { stop } = await move.traffic();
      const endpoint = `${oldIp}:${move.upstreams.port}`;
      const exitCode = async () => {
        const flags = { quietFor: '3s', timeout: '0s' };
        return (await runDrained([{ url: move.sidelight.httpUrl }], { target: endpoint, flags })).code;
      };
      const { page, problems } = await openPage(browser, `${move.sidelight.httpUrl}/?view=pins`);
      await page.getByText('No endpoint has left').waitFor();
      await page.evaluate(watchForCard(endpoint));
      move.answer(newIp);

      const shownMs = await page.evaluate<number>('cardAtMs');
      const leftAtMs = Number(move.events('discovery.changed')[0]?.['atMs']);
      expect(shownMs - leftAtMs).toBeLessThan(2000);

      const card = page.locator(`[data-endpoint="${endpoint}"]`);
      await page.locator('[data-state="in_use"]').waitFor();
      await page.getByRole('link', { name: /Pins board \(\d+ stale\)/ }).waitFor();
      const text = await card.innerText();
      expect(text).toContain('page-flip');
      expect(text).toContain('What ends it:');
      await expect.poll(() => card.locator('.c-flow').count()).toBeGreaterThan(1);
      expect(await card.locator('.verdict').innerText()).toContain('In use');
      expect(await card.locator('.d-drained').count()).toBe(0);

      expect(await exitCode()).toBe(1);
      await stop();
      await page.getByText('Cleared lately').waitFor();
      await until('nothing flowing', async () => /Bytes\/s\s+0 B/.test(await card.innerText()), 30_000);
      const label = await card.getByRole('img').getAttribute('aria-label');
      expect(label).toMatch(/^requests since it left/);
      const lastX = Number(await card.locator('.c-flow').last().getAttribute('x'));
      // The picture is 600 wide: after its last column there is nothing.
      expect(lastX).toBeLessThan(540);

      await page.locator(`[data-endpoint="${endpoint}"][data-state="drained"]`).waitFor();
      expect(await card.locator('.verdict').innerText()).toMatch(/drained/i);
      expect(await exitCode()).toBe(0);
      expect(problems).toEqual([]);
    })();
  });

  it('comes back by itself after a restart, and says meanwhile that it shows what was', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const port = await freePort();
      const listen = { http: `127.0.0.1:${port}`, grpc: '127.0.0.1:0' };
      const first = await startTestSidelight({ listen });
      cleanup.defer(() => first.close());
      const { page } = await openPage(browser, `${first.httpUrl}/?view=coverage`);
      const status = page.getByRole('status');
      await status.getByText('live').waitFor();
      await first.close();
      await status.getByText('not connected, trying again').waitFor();
      await page.getByText('Is sidelight serve running').waitFor();
      await page.getByText('Coverage and health').waitFor();
      cleanup.use(await startTestSidelight({ listen }));
      await status.getByText('live').waitFor();
      expect(await page.getByText('Is sidelight serve running').count()).toBe(0);
    })();
  });

  it('shows names and paths that would be scripts as what they are', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const sidelight = cleanup.use(await startTestSidelight());
      const attack = '<img src=x onerror="window.hit=1"><script>window.hit=2</script>';
      const cluster = staticCluster(['127.0.0.1:1'], { name: attack });
      const node = `"><svg onload=window.hit=3>`;
      const envoy = await startReporter(cleanup, node, {
        sidelightPort: sidelight.grpcPort,
        clusters: [cluster],
        routes: [routeTo(attack)],
      });
      const client = cleanup.use(http1Client(envoy.port('http'), 1));
      const headers = { 'x-sidelight-key': attack, 'x-request-id': attack, 'user-agent': attack };
      const path = '/<img/src=x/onerror=window.hit=4>/javascript:window.hit=5';
      await client.request(path, { headers });
      await until('the request', async () => (await sidelight.metric('sidelight_requests_total')) > 0);
      const { page, problems } = await openPage(browser, `${sidelight.httpUrl}/?q=${encodeURIComponent('<img')}`);
      await page.getByRole('link', { name: attack, exact: true }).waitFor();
      await page.getByRole('link', { name: 'Exchanges' }).click();
      await page.getByText(path).waitFor();
      await page.locator('details summary').first().click();
      await page.getByText(node).first().waitFor();
      await page.getByRole('link', { name: 'Endpoints' }).click();
      await page.getByRole('cell', { name: attack }).waitFor();
      await page.getByRole('link', { name: 'Coverage' }).click();
      await page.getByText(node).first().waitFor();
      expect(await page.evaluate<unknown>('window.hit ?? "nothing ran"')).toBe('nothing ran');
      expect(await page.locator('img:not([src="page/icon.svg"])').count()).toBe(0);
      // Nor did the page try: a script that its policy refused would be told here.
      expect(problems).toEqual([]);
    })();
  });

  it('holds the list of exchanges still while one of them is open', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const sidelight = cleanup.use(await startTestSidelight());
      const stream = cleanup.use(logClient(sidelight.grpcPort, 'failing')).stream();
      const fail = (key: string) => stream.entries(answered({ key, cluster: key, startMs: Date.now(), status: 503 }));
      fail('first');
      const { page } = await openPage(browser, `${sidelight.httpUrl}/?view=exchanges`);
      await page.locator('details.exchange summary').click();
      await page.locator('.waterfall').waitFor();
      fail('second');
      await page.getByText('Held while an exchange is open.').waitFor();
      expect(await page.locator('details.exchange').count()).toBe(1);
      await page.getByRole('button', { name: 'show the newest' }).click();
      await expect.poll(() => page.locator('details.exchange summary').first().innerText()).toContain('second');
      expect(await page.locator('details.exchange').count()).toBe(2);
    })();
  });

  it('pages through a thousand clusters, and finds one of them', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const sidelight = cleanup.use(await startTestSidelight());
      const envoy = cleanup.use(logClient(sidelight.grpcPort, 'many'));
      const names = Array.from({ length: 1000 }, (_, index) => `outbound|80||shop-${index}.prod.svc.cluster.local`);
      const startMs = Date.now() - 1000;
      const entries = names.flatMap((cluster, index) =>
        answered({ key: `k${index}`, cluster, startMs, status: index % 10 === 0 ? 503 : 200 }),
      );
      envoy.stream().entries(entries);
      await until('all of them', async () => (await sidelight.metric('sidelight_requests_total')) === 1000);
      const { page, problems } = await openPage(browser, `${sidelight.httpUrl}/`);
      await page.getByText('page 1 of 20, 1,000 rows').waitFor();
      expect(await page.locator('tbody tr').count()).toBe(50);
      // The worst come first.
      expect(await page.locator('tbody tr [data-rate="effective"]').first().innerText()).toContain('0 %');
      await page.locator('svg.spark').first().waitFor();
      await page.getByRole('button', { name: 'next →' }).click();
      await page.getByText('page 2 of 20').waitFor();
      await page.getByRole('searchbox').fill('shop-777.');
      await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
      expect(problems).toEqual([]);
    })();
  });
});
