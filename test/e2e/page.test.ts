import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { openBrowser, openPage } from '../support/browser.ts';
import { cleaned } from '../support/reporting.ts';
import { startTestSidelight } from '../support/sidelight.ts';

/* The live page in a real Chromium. */

/** What axe-core finds against it, in short. */
async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}

it('says first that nobody reports, and what to do about it', async (context) => {
  await cleaned(async (cleanup) => {
    const browser = await openBrowser(context, cleanup);
    const sidelight = cleanup.use(await startTestSidelight());
    const { page, problems } = await openPage(browser, `${sidelight.httpUrl}/`);
    await page.getByText('No proxy reports.').waitFor();
    await page.getByText('No request was seen yet.').waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(problems).toEqual([]);
  })();
});
