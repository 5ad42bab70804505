import { mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { stringify } from 'yaml';
import { startBlackhole } from '../../src/lab/blackhole.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { istioRetries, manyRetries } from '../../src/lab/istio-defaults.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { openBrowser, openPage } from '../support/browser.ts';
import { type Move, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { keepSending, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/*
 * `npm run pictures`: takes the pictures of docs/ from a real Chromium (CHROMIUM_BIN) before a real Envoy. A cut-over in
 * which `payments` keeps its connections and `search` has drained; retries hide a dead address of `cart`.
 */
const folder = new URL('../../docs/images/', import.meta.url).pathname;
const view = { light: { colorScheme: 'light' }, dark: { colorScheme: 'dark' } } as const;
const narrow = { ...view.light, viewport: { width: 390, height: 844 } };

const cleanup = new Cleanup();
try {
  mkdirSync(folder, { recursive: true });
  const { sidelight, leave } = await play();
  await takeAll(sidelight, leave);
} finally {
  await cleanup.run();
}

/** Plays the scene; resolves when there is something to see in each view. `leave`: one of the proxies goes. */
async function play(): Promise<{ sidelight: TestSidelight; leave: () => Promise<void> }> {
  const dns = cleanup.use(await DnsServer.start());
  const dead = cleanup.use(await startBlackhole('127.0.0.13'));
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.14', '127.0.0.15'] }));
  const shop = { cart: [...upstreams.addresses, dead.ip], catalog: [upstreams.addresses[0] ?? '', dead.ip] };
  const file = `${cleanup.use(tempDir()).path}/endpoints.yaml`;
  writeFileSync(file, stringify({ clusters: shop }));
  const moving = ['payments', 'search'];
  const sidelight = cleanup.use(
    await startTestSidelight({
      clusters: moving.map((match) => ({ match, host: `${match}.test`, graceMs: 4000, idleTimeoutMs: 5000 })),
      discovery: { file, dns: { servers: [`127.0.0.1:${dns.port}`], sameResolverAsProxy: true, refreshMs: 500 } },
      pins: { quietMs: 3000 },
      page: { quietForMs: 10_000 },
    }),
  );
  const listed = { payments: 'LOGICAL_DNS', search: 'STRICT_DNS' } as const;
  const moves: Move[] = [];
  for (const name of ['payments', 'search'] as const)
    moves.push(await setUpMove(cleanup, { dns, sidelight }, { name, kind: listed[name] }));
  for (const move of moves) await move.traffic();
  await playDeadAddress(sidelight.grpcPort, upstreams, `${dead.ip}:${dead.port}`);
  await sleep(20_000);
  for (const move of moves) move.answer(newIp);
  await until('a stale pin', async () => (await sidelight.metric('sidelight_pins', { pin: 'stale' })) > 0, 30_000);
  await sleep(20_000);
  return { sidelight, leave: async () => moves[0]?.envoy.close() };
}

async function playDeadAddress(sidelightPort: number, { addresses }: Upstreams, dead: string): Promise<void> {
  const extra = { connectTimeoutMs: 100, extra: manyRetries };
  const envoy = await startReporter(cleanup, 'shop', {
    sidelightPort,
    clusters: [
      staticCluster([...addresses, dead], { ...extra, name: 'cart' }),
      staticCluster([...addresses.slice(0, 1), dead], { ...extra, name: 'catalog' }),
    ],
    routes: [{ ...routeTo('catalog'), match: { prefix: '/catalog' } }, routeTo('cart', istioRetries)],
  });
  keepSending(cleanup, envoy, { path: '/cart/items?user=1', pauseMs: 100 });
  keepSending(cleanup, envoy, { path: '/catalog/42', pauseMs: 400, concurrency: 1 });
}

/** Nothing is skipped here: without a browser there are no pictures. */
function refuse(reason?: string | boolean): never {
  throw new Error(String(reason));
}

async function takeAll({ httpUrl }: TestSidelight, leave: () => Promise<void>): Promise<void> {
  const browser = await openBrowser({ skip: refuse }, cleanup);
  const take = async (
    name: string,
    where: string,
    options: Parameters<typeof openPage>[2],
    ready: (page: Page) => Promise<void>,
  ) => {
    const { page } = await openPage(browser, `${httpUrl}/?${where}`, options);
    await ready(page);
    await page.screenshot({ path: `${folder}${name}.png` });
    await page.close();
  };
  const sparks = (page: Page) => page.locator('svg.spark').first().waitFor();
  const cards = async (page: Page) => {
    await page.locator('[data-state="drained"]').waitFor({ timeout: 60_000 });
    await page.locator(`[data-endpoint^="${oldIp}"] .c-flow`).first().waitFor();
  };
  const opened = async (page: Page) => {
    await page.locator('details.exchange summary').first().click();
    await page.locator('.waterfall').waitFor();
  };
  await take('clusters', 'view=clusters', view.light, sparks);
  await take('clusters-narrow', 'view=clusters', narrow, sparks);
  await take('pins', 'view=pins', view.light, cards);
  await take('pins-dark', 'view=pins', view.dark, cards);
  await take('exchanges', 'view=exchanges&q=cart', view.light, opened);
  await take('endpoints', 'view=endpoints&q=test', view.light, (page) => page.locator('.changes').first().waitFor());
  await leave();
  await take('blind', 'view=coverage', view.light, (page) => page.getByText('silent now').waitFor());
}
