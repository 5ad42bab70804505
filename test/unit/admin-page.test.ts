import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { readPage } from '../../src/admin/page-files.ts';
import type { AdminSources } from '../../src/admin/routes.ts';
import { type Admin, startAdmin } from '../../src/admin/server.ts';
import { type PagePart, Viewers, type ViewersOptions } from '../../src/admin/viewers.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { EventReader } from '../support/event-reader.ts';
import { until } from '../support/until.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const pageFolder = `${import.meta.dirname}/../../page`;

const never = (): never => {
  throw new Error('nobody asked for this');
};

interface Started {
  admin: Admin;
  viewers: Viewers;
  url: string;
  errors: unknown[];
}

async function started(
  parts: Partial<ViewersOptions['parts']> = {},
  options: Partial<ViewersOptions> & { page?: boolean } = {},
): Promise<Started> {
  const errors: unknown[] = [];
  const viewers = new Viewers({
    parts: { coverage: never, clusters: never, pins: never, endpoints: never, exchanges: never, ...parts },
    max: 3,
    tickMs: 20,
    now: () => 42,
    onError: (error) => errors.push(error),
    ...options,
  });
  const files = readPage(pageFolder, {});
  const history = (clusters: ReadonlySet<string>) => ({ clusters: [...clusters] });
  const page = options.page === false ? undefined : { files, viewers, history };
  const sources: AdminSources = {
    ready: never,
    metrics: never,
    exchanges: never,
    pins: never,
    endpoints: never,
    clusters: never,
    reporters: never,
    page,
  };
  const admin = await startAdmin({ host: '127.0.0.1', port: 0, sources, onError: (error) => errors.push(error) });
  cleanup.defer(() => admin.close(0));
  return { admin, viewers, errors, url: `http://127.0.0.1:${admin.port}` };
}

function statuses(url: string, paths: readonly string[]): Promise<number[]> {
  return Promise.all(paths.map(async (path) => (await fetch(`${url}${path}`)).status));
}

async function watch({ url }: Pick<Started, 'url'>, parts: PagePart[]): Promise<EventReader> {
  return cleanup.use(await EventReader.open(`${url}/api/v1/events?parts=${parts.join(',')}`));
}

describe('the page', () => {
  it('may run and ask this port alone, whatever it shows', async () => {
    const { url } = await started();
    const answer = await fetch(`${url}/`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('asks nothing of anybody else', () => {
    const files = readdirSync(pageFolder).map((name) => readFileSync(`${pageFolder}/${name}`, 'utf8'));
    const hosts = files.flatMap((text) => text.match(/(?:https?:)?\/\/[a-z0-9-]+\.[a-z0-9.-]+/gi) ?? []);
    expect(hosts.filter((host) => host !== 'http://www.w3.org')).toEqual([]);
  });

  it('reads only, and no other file than its own', async () => {
    const { url } = await started();
    expect((await fetch(`${url}/`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${url}/`, { method: 'HEAD' })).status).toBe(200);
    const others = ['/page/..%2fpackage.json', '/page/%2e%2e/package.json', '/page/', '/page/index.html'];
    expect(await statuses(url, others)).toEqual([404, 404, 404, 404]);
  });

  it('is not there where it is switched off, nor is what it asks', async () => {
    const { url } = await started({}, { page: false });
    const all = ['/', '/page/app.js', '/api/v1/events', '/api/v1/history?cluster=a'];
    expect(await statuses(url, all)).toEqual([404, 404, 404, 404]);
  });

  it('asks for the history of some clusters at a time', async () => {
    const { url } = await started();
    const answer = await fetch(`${url}/api/v1/history?cluster=a&cluster=b%26c`);
    expect(await answer.json()).toEqual({ clusters: ['a', 'b&c'] });
    expect((await fetch(`${url}/api/v1/history`)).status).toBe(400);
    expect((await fetch(`${url}/api/v1/history?${'cluster=a&'.repeat(101)}`)).status).toBe(400);
  });
});

describe('who watches', () => {
  it('is sent each part that he asks for, then what changed and the time', async () => {
    let value = 1;
    const viewer = await watch(await started({ pins: () => ({ value }) }), ['pins']);
    await viewer.until(({ event, data }) => event === 'pins' && data === '{"value":1}');
    await viewer.until(({ event, data }) => event === 'tick' && data === '{"nowMs":42}');
    value = 2;
    await viewer.until(({ event, data }) => event === 'pins' && data === '{"value":2}');
    await viewer.ticks(3);
    expect(viewer.events.filter(({ event }) => event === 'pins')).toHaveLength(2);
  });

  it('shares what is made with all the others', async () => {
    let made = 0;
    const on = await started({ clusters: () => ({ made: (made += 1) }) }, { tickMs: 100 });
    const all = [await watch(on, ['clusters']), await watch(on, ['clusters']), await watch(on, ['clusters'])];
    const first = made;
    await Promise.all(all.map((one) => one.ticks(4)));
    expect(made - first).toBeLessThanOrEqual(6);
  });

  it('costs nothing once he has left', async () => {
    let made = 0;
    const on = await started({ pins: () => ({ made: (made += 1) }) });
    const viewer = await watch(on, ['pins']);
    await viewer.ticks(2);
    await viewer.close();
    await until('the viewer to be forgotten', () => on.viewers.count === 0);
    const atEnd = made;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(made).toBe(atEnd);
  });

  it('is one of so many: the next is told to wait', async () => {
    const on = await started({ pins: () => 1 });
    for (let i = 0; i < 3; i += 1) await watch(on, ['pins']);
    const refused = await fetch(`${on.url}/api/v1/events?parts=pins`);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10']);
    expect((await fetch(`${on.url}/api/v1/events?parts=secrets`)).status).toBe(400);
  });

  it('is sent nothing more while he does not read, and is let go in the end', async () => {
    const large = 'x'.repeat(3_000_000);
    let made = 0;
    const on = await started({ exchanges: () => ({ large, made: (made += 1) }) }, { tickMs: 5 });
    const socket = connect(on.admin.port, '127.0.0.1');
    cleanup.defer(() => void socket.destroy());
    socket.on('error', () => undefined);
    socket.write('GET /api/v1/events?parts=exchanges HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    socket.pause();
    await until('the viewer', () => on.viewers.count === 1);
    await until('the viewer to be let go', () => on.viewers.count === 0);
    expect(made).toBeLessThan(3);
  });

  it('misses no more than the part that cannot be made', async () => {
    const on = await started({ pins: () => 1 });
    const viewer = await watch(on, ['coverage', 'pins']);
    await viewer.until(({ event }) => event === 'pins');
    expect(viewer.events.map(({ event }) => event)).not.toContain('coverage');
    expect(on.errors.length).toBeGreaterThan(0);
  });

  it('is sent a large part less often', async () => {
    let made = 0;
    const large = 'x'.repeat(200_000);
    const on = await started({ clusters: () => ({ large, made: (made += 1) }) });
    const viewer = await watch(on, ['clusters']);
    await viewer.ticks(12);
    expect(made).toBeLessThanOrEqual(5);
  });

  it('sees the stream end when the port closes, and is not waited for', async () => {
    const on = await started({ pins: () => 1 });
    const viewer = await watch(on, ['pins']);
    await viewer.until(({ event }) => event === 'pins');
    await on.admin.close(10_000);
    await expect(viewer.ended).resolves.toBeUndefined();
  });
});
