import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { percent } from '../../page/format.js';
import { startBlackhole } from '../../src/lab/blackhole.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { istioRetries, manyRetries } from '../../src/lab/istio-defaults.ts';
import { drive } from '../../src/lab/load.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { barriers, openBrowser, openPage, rateOf } from '../support/browser.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { part } from '../support/part.ts';
import { cleaned, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* The live page in a real Chromium, against what a real Envoy does: one of two addresses is dead, and retries hide it. */
const everything = new Cleanup();
const total = 40;
let sidelight: TestSidelight;

beforeAll(async () => {
  if (part('CHROMIUM_BIN') === undefined) return;
  const otlp = everything.use(await startOtlpReceiver());
  sidelight = everything.use(
    await startTestSidelight({ otlp: { endpoint: otlp.endpoint }, traces: { jaegerUrl: 'http://127.0.0.1:16686/' } }),
  );
  const dead = everything.use(await startBlackhole('127.0.0.13'));
  const upstreams = everything.use(await Upstreams.start({ ips: ['127.0.0.12'] }));
  const cluster = staticCluster([`${dead.ip}:${dead.port}`, ...upstreams.addresses], {
    name: 'shop',
    connectTimeoutMs: 250,
    extra: manyRetries,
  });
  const routes = [routeTo('shop', istioRetries)];
  const envoy = await startReporter(everything, 'shopper', {
    sidelightPort: sidelight.grpcPort,
    clusters: [cluster],
    routes,
  });
  const client = everything.use(http1Client(envoy.port('http'), 8));
  await drive(() => client.request('/cart?card=4111'), { concurrency: 8, total });
  await until('every request', async () => (await requests()) === total);
});
afterAll(() => everything.run());

function requests(labels: Record<string, string> = {}): Promise<number> {
  return sidelight.metric('sidelight_requests_total', { cluster: 'shop', ...labels });
}

describe('the page', () => {
  it('says first that nobody reports, and what to do about it', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const empty = cleanup.use(await startTestSidelight());
      const { page, problems } = await openPage(browser, `${empty.httpUrl}/`);
      await page.getByText('No proxy reports.').waitFor();
      await page.getByText('No request was seen yet.').waitFor();
      for (const [view, text] of [
        ['Pins board', 'No endpoint has left'],
        ['Endpoints', 'No endpoint was used or listed yet.'],
        ['Exchanges', 'Nothing worth a look yet.'],
        ['Coverage', 'No proxy has reported yet.'],
      ] as const) {
        await page.getByRole('link', { name: view }).click();
        await page.getByText(text).waitFor();
      }
      expect(await barriers(page)).toEqual([]);
      expect(problems).toEqual([]);
    })();
  });

  it('shows the rates of a cluster as /metrics has them, with the cause and the price of what was masked', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const { page, problems } = await openPage(browser, `${sidelight.httpUrl}/?span=start`);
      await page.getByRole('link', { name: 'shop', exact: true }).waitFor();
      const masked = await requests({ outcome: 'masked' });
      expect(masked).toBeGreaterThan(0);
      const attempts = (labels = {}) => sidelight.metric('sidelight_attempts_total', { cluster: 'shop', ...labels });
      expect(await rateOf(page, 'shop', 'effective')).toBe('100 %');
      expect(await rateOf(page, 'shop', 'first-try')).toBe(percent((total - masked) / total));
      expect(await rateOf(page, 'shop', 'masked')).toBe(percent(masked / total));
      expect(await rateOf(page, 'shop', 'actual')).toBe(
        percent((await attempts({ result: 'ok' })) / (await attempts())),
      );
      const row = page.getByRole('row').filter({ hasText: 'shop' });
      const text = await row.innerText();
      expect(text).toContain(`${masked} connect timeout`);
      expect(text).toContain(`${((await attempts()) / total).toFixed(2)}×`);
      const costS = await sidelight.metric('sidelight_masked_latency_seconds_sum', { cluster: 'shop' });
      expect(text).toMatch(new RegExp(`${Math.floor(costS)}(\\.\\d+)? s in all`));
      await row.getByRole('img', { name: /Last 15 min: first-try success fell to \d+ %/ }).waitFor();
      expect(problems).toEqual([]);
    })();
  });

  it('opens an exchange to its attempts on a time axis, with its trace', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const { page, problems } = await openPage(browser, `${sidelight.httpUrl}/?view=exchanges&outcome=masked`);
      const first = page.locator('details.exchange').first();
      await first.locator('summary').click();
      const detail = first.locator('.detail');
      await detail.getByText('a retry hid it').waitFor();
      const bars = detail.locator('.waterfall-row');
      await expect.poll(() => bars.count()).toBeGreaterThanOrEqual(3);
      expect(await bars.nth(1).innerText()).toMatch(/127\.0\.0\.13:\d+[\s\S]*connect timeout/);
      expect(await bars.last().innerText()).toMatch(/127\.0\.0\.12:\d+[\s\S]*200 over connection \d+, .* old/);
      const link = detail.getByRole('link', { name: 'Open the trace' });
      expect(await link.getAttribute('href')).toMatch(/^http:\/\/127\.0\.0\.1:16686\/trace\/[0-9a-f]{32}$/);
      // The query is a stranger's secret.
      expect(await page.content()).not.toContain('4111');
      expect(problems).toEqual([]);
    })();
  });

  it.for([
    ['light', { colorScheme: 'light' }],
    ['dark and narrow', { colorScheme: 'dark', viewport: { width: 380, height: 800 } }],
  ] as const)(
    'leaves axe-core nothing to say, in each view, %s',
    { timeout: 120_000 },
    async ([, options], context) => {
      await cleaned(async (cleanup) => {
        const browser = await openBrowser(context, cleanup);
        const { page, problems } = await openPage(browser, `${sidelight.httpUrl}/`, options);
        for (const view of ['clusters', 'pins', 'endpoints', 'exchanges', 'coverage']) {
          await page.goto(`${sidelight.httpUrl}/?view=${view}&q=shop`);
          await page.getByRole('status').getByText('live').waitFor();
          await page.locator('main h2').waitFor();
          if (view === 'exchanges') await page.locator('details summary').first().click();
          expect([view, ...(await barriers(page))]).toEqual([view]);
          const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
          expect([view, isWide]).toEqual([view, false]);
        }
        expect(problems).toEqual([]);
      })();
    },
  );

  it('is used by keyboard alone', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const { page } = await openPage(browser, `${sidelight.httpUrl}/`);
      await page.getByRole('link', { name: 'shop', exact: true }).waitFor();
      const focused = () => page.evaluate<string>('document.activeElement.textContent');
      await page.keyboard.press('Tab');
      expect(await focused()).toBe('To the content');
      for (let step = 0; (await focused()) !== 'Exchanges' && step < 10; step += 1) await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Exchanges' }).waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('cart masked');
      await expect.poll(() => page.url()).toContain('q=cart+masked');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByText('a retry hid it').first().waitFor();
      // What is drawn anew each second must not take the focus away.
      const before = await focused();
      await page.waitForTimeout(2500);
      expect(await focused()).toBe(before);
      await page.goBack();
      await page.getByRole('heading', { name: 'Clusters' }).waitFor();
    })();
  });

  it('keeps what it shows in its address', async (context) => {
    await cleaned(async (cleanup) => {
      const browser = await openBrowser(context, cleanup);
      const { page } = await openPage(browser, `${sidelight.httpUrl}/?view=exchanges&q=nowhere&outcome=masked`);
      await page.getByText('No exchange fits “nowhere” and masked.').waitFor();
      await page.getByRole('searchbox').fill('shop');
      await page.locator('details.exchange').first().waitFor();
      await page.reload();
      await page.locator('details.exchange').first().waitFor();
      expect(await page.getByRole('searchbox').inputValue()).toBe('shop');
    })();
  });
});
