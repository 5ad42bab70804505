import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CDPSession } from 'playwright-core';
import { expect, it } from 'vitest';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { openBrowser, openPage } from '../support/browser.ts';
import { liveMiB } from '../support/live-memory.ts';
import { answered, logClient } from '../support/log-client.ts';
import { cleaned } from '../support/reporting.ts';
import { thisProgram } from '../support/this-program.ts';
import { until } from '../support/until.ts';

const beatMs = 100;
/** Of each beat: together a thousand a second. */
const perBeat = 100;
const viewers = 50;
const settleMs = 8000;
const watchedMs = 20_000;
/** Each second some hundred kilobytes come: a hundredth of it kept would be more than this. */
const mostPageGrowthMiB = 2;
/** Each viewer has a socket and what it has not read yet. */
const mostPerViewerMiB = 0.5;

it('a page left open at a thousand requests a second stays as it is, and so does the server behind fifty of them', async (context) => {
  await cleaned(async (cleanup) => {
    const browser = await openBrowser(context, cleanup);
    const inspectPort = await freePort();
    const program = thisProgram('--max-semi-space-size=4', `--inspect=127.0.0.1:${inspectPort}`);
    const sidelight = cleanup.use(await startSidelight(program, { join: { lingerMs: 1001 } }));
    const stream = cleanup.use(logClient(sidelight.grpcPort, 'busy')).stream();
    let sent = 0;
    const beat = setInterval(() => {
      const startMs = Date.now();
      const some = Array.from({ length: perBeat }, (_, index) => ({
        key: `k${sent + index}`,
        cluster: `shop-${index}`,
        startMs,
        status: index % 5 === 0 ? 503 : 200,
      }));
      sent += perBeat;
      stream.entries(some.flatMap(answered));
    }, beatMs);
    cleanup.defer(() => clearInterval(beat));
    const { page, problems } = await openPage(browser, `${sidelight.httpUrl}/?view=exchanges`);
    await page.locator('details.exchange').first().waitFor();
    await page.goto(`${sidelight.httpUrl}/?view=clusters`);
    await page.locator('svg.spark').first().waitFor();
    const debug = await page.context().newCDPSession(page);
    await sleep(settleMs);
    const before = { page: await heapMiB(debug), nodes: await page.locator('*').count() };
    await sleep(watchedMs);
    const after = { page: await heapMiB(debug), nodes: await page.locator('*').count() };
    expect(after.page - before.page).toBeLessThan(mostPageGrowthMiB);
    expect(after.nodes).toBeLessThan(before.nodes * 1.2);

    const alone = await heldMiB(inspectPort);
    const all = Array.from({ length: viewers }, () =>
      get(`${sidelight.httpUrl}/api/v1/events`, { agent: false }, (response) => response.resume()),
    );
    for (const one of all) one.on('error', () => undefined);
    cleanup.defer(() => {
      for (const one of all) one.destroy();
    });
    // As they come, and while they stay.
    for (let look = 0; look < 2; look += 1) {
      await sleep(watchedMs / 2);
      expect((await heldMiB(inspectPort)) - alone).toBeLessThan(viewers * mostPerViewerMiB);
    }
    clearInterval(beat);
    const counted = async () =>
      (await sidelight.samples())
        .filter(({ name }) => name === 'sidelight_requests_total')
        .reduce((sum, { value }) => sum + value, 0);
    await until('every request', async () => (await counted()) >= sent, 30_000);
    expect(await counted()).toBe(sent);
    expect(problems).toEqual([]);
  })();
}, 120_000);

/** What the server holds. What is under way comes and goes: the least of three looks. */
async function heldMiB(inspectPort: number): Promise<number> {
  const looks: number[] = [];
  while (looks.length < 3) {
    looks.push(await liveMiB(inspectPort));
    await sleep(1000);
  }
  return Math.min(...looks);
}

/** What scripts of the page hold after a garbage collection. */
async function heapMiB(debug: CDPSession): Promise<number> {
  await debug.send('HeapProfiler.collectGarbage');
  return (await debug.send('Runtime.getHeapUsage')).usedSize / (1 << 20);
}
