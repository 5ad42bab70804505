import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import type { TestContext } from 'vitest';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import { needPart } from './part.ts';

/** A page, and what went wrong on it: errors of scripts, of the console, and refusals of the content security policy. */
export interface Watched {
  page: Page;
  problems: string[];
}

/** A real Chromium, or the test is skipped. As root it runs without its sandbox: it opens pages of this process alone. */
export async function openBrowser(context: Pick<TestContext, 'skip'>, cleanup: Cleanup): Promise<Browser> {
  const executablePath = needPart(context, 'CHROMIUM_BIN');
  // A browser asks its maker this and that: here no name leads anywhere.
  const names = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', names] });
  cleanup.defer(() => browser.close());
  return browser;
}

/** A page of 1280 × 900, light unless told otherwise. */
export async function openPage(
  browser: Browser,
  url: string,
  options: Parameters<Browser['newPage']>[0] = {},
): Promise<Watched> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.setDefaultTimeout(20_000);
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
  });
  await page.goto(url);
  return { page, problems };
}

/** What axe-core finds against the page as it is, in short; empty: nothing. */
export async function barriers(page: Page): Promise<string[]> {
  // By the debugger, which the page's policy does not bind.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}

/** The text of a cell of the clusters' table, by its cluster and the rate's name. */
export async function rateOf(page: Page, cluster: string, rate: string): Promise<string> {
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: cluster, exact: true }) });
  return (await row.locator(`[data-rate="${rate}"]`).innerText()).replace(/^[▾◐] /, '').split('\n')[0] ?? '';
}
