import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { EndpointChange } from '../../src/discovery/change.ts';
import type { Discovery } from '../../src/discovery/discovery.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import type { SidelightError } from '../../src/lib/errors.ts';
import { discovering, dnsOptions, noRule } from '../support/discovery.ts';

let cleanup: Cleanup;
let folder: string;
let file: string;
let changes: EndpointChange[];
let errors: SidelightError[];

beforeEach(() => {
  cleanup = new Cleanup();
  folder = cleanup.use(tempDir()).path;
  file = path.join(folder, 'endpoints.yaml');
  changes = [];
  errors = [];
});

afterEach(async () => {
  await cleanup.run();
});

async function discover({ pollMs = 60_000, dnsPort = 0 } = {}) {
  const { discovery } = discovering(cleanup, {
    dns: dnsPort === 0 ? undefined : dnsOptions([`127.0.0.1:${dnsPort}`], { sameResolverAsProxy: false }),
    file: { path: file, staleAfterMs: 1000, pollMs },
    rule: () => ({ ...noRule, host: 'a.example.com' }),
    onChange: (change) => changes.push(change),
    onError: (error) => errors.push(error),
  });
  await discovery.start();
  return discovery;
}

const until = { timeout: 5000, interval: 10 };
const listed = (discovery: Discovery, cluster = 'a') => [
  ...(discovery.snapshot().cluster(cluster)?.listed.keys() ?? []),
];

test('its clusters are covered after the start, without traffic', async () => {
  writeFileSync(file, 'clusters: {a: [127.0.0.11, "127.0.0.12:80"], b: []}');
  const discovery = await discover();
  expect(discovery.snapshot().cluster('a')).toMatchObject({
    source: 'file',
    subject: file,
    sameAsProxy: true,
    graceMs: 0,
  });
  expect(listed(discovery)).toEqual(['127.0.0.11', '127.0.0.12:80']);
  expect(
    discovery
      .snapshot()
      .clusters()
      .map(({ cluster }) => cluster),
  ).toEqual(['a', 'b']);
});

test('a change is seen at once by an event, a cluster that is no longer named is no longer covered', async () => {
  writeFileSync(file, 'clusters: {a: [127.0.0.11], b: [127.0.0.1]}');
  const discovery = await discover();
  writeFileSync(file, 'clusters: {a: [127.0.0.12]}');
  await vi.waitFor(() => expect(changes).toHaveLength(1), until);
  expect(changes[0]).toMatchObject({ cluster: 'a', source: 'file', added: ['127.0.0.12'], removed: ['127.0.0.11'] });
  expect(discovery.snapshot().cluster('a')).toMatchObject({
    graceMs: 10_000,
    left: new Map([['127.0.0.11', changes[0]?.atMs]]),
  });
  expect(discovery.snapshot().cluster('b')).toBeUndefined();
});

test('a cluster that is left out by a slip and named again keeps what is known of it', async () => {
  writeFileSync(file, 'clusters: {a: [127.0.0.11, 127.0.0.13]}');
  const discovery = await discover();
  writeFileSync(file, 'clusters: {a: [127.0.0.12, 127.0.0.13]}');
  await vi.waitFor(() => expect(changes).toHaveLength(1), until);
  const before = discovery.snapshot().cluster('a');
  writeFileSync(file, 'clusters: {b: [127.0.0.1]}');
  await vi.waitFor(() => expect(discovery.snapshot().cluster('a')).toBeUndefined(), until);
  writeFileSync(file, 'clusters: {a: [127.0.0.12]}');
  await vi.waitFor(() => expect(discovery.snapshot().cluster('a')).toBeDefined(), until);
  const { left, firstAnswerMs } = discovery.snapshot().cluster('a') ?? {};
  expect(firstAnswerMs).toBe(before?.firstAnswerMs);
  expect(left?.get('127.0.0.11')).toBe(changes[0]?.atMs);
  expect(left?.has('127.0.0.13')).toBe(true);
});

test('the swap of a link, as a ConfigMap does it, is seen', async () => {
  for (const [version, ip] of [
    ['v1', '127.0.0.11'],
    ['v2', '127.0.0.12'],
  ] as const) {
    mkdirSync(path.join(folder, version));
    writeFileSync(path.join(folder, version, 'endpoints.yaml'), `clusters: {a: [${ip}]}`);
  }
  symlinkSync('v1', path.join(folder, '..data'));
  symlinkSync('..data/endpoints.yaml', file);
  const discovery = await discover();
  symlinkSync('v2', path.join(folder, '..data_tmp'));
  renameSync(path.join(folder, '..data_tmp'), path.join(folder, '..data'));
  await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.12']), until);
});

test('a file behind a link to another folder is seen by looking now and then', async () => {
  const elsewhere = cleanup.use(tempDir()).path;
  writeFileSync(path.join(elsewhere, 'e.yaml'), 'clusters: {a: [127.0.0.11]}');
  symlinkSync(path.join(elsewhere, 'e.yaml'), file);
  const discovery = await discover({ pollMs: 50 });
  writeFileSync(path.join(elsewhere, 'e.yaml'), 'clusters: {a: [127.0.0.12]}');
  await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.12']), until);
});

test('a bad file keeps the last good view, tells line and expectation once, and the view ages', async () => {
  writeFileSync(file, 'clusters: {a: [127.0.0.11]}');
  const discovery = await discover({ pollMs: 50 });
  writeFileSync(file, 'clusters:\n  a:\n    - nowhere\n    - 1.2.3\n');
  await vi.waitFor(() => expect(errors).toHaveLength(1), until);
  expect(errors[0]).toMatchObject({ code: 'file_invalid' });
  expect(errors[0]?.message).toBe(
    `${file}: line 3: clusters.a[0]: found "nowhere": expected IP, IP:port or [IPv6]:port (and 1 more)`,
  );
  const view = discovery.snapshot().cluster('a');
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(errors).toHaveLength(1);
  expect(discovery.snapshot().cluster('a')).toEqual(view);
  expect(view?.lastError).toContain('expected IP');
  expect(listed(discovery)).toEqual(['127.0.0.11']);
  writeFileSync(file, 'clusters: {a: [127.0.0.11]}');
  await vi.waitFor(() => expect(discovery.snapshot().cluster('a')?.lastError).toBeUndefined(), until);
});

test('a file that is gone keeps the last good view, and is read again when it is back', async () => {
  writeFileSync(file, 'clusters: {a: [127.0.0.11]}');
  const discovery = await discover({ pollMs: 50 });
  rmSync(file);
  await vi.waitFor(() => expect(errors).toHaveLength(1), until);
  expect(errors[0]).toMatchObject({ code: 'file_unreadable', cause: { code: 'ENOENT' } });
  expect(listed(discovery)).toEqual(['127.0.0.11']);
  writeFileSync(file, 'clusters: {a: [127.0.0.12]}');
  await vi.waitFor(() => expect(listed(discovery)).toEqual(['127.0.0.12']), until);
});

test('a good file that does not change never ages', async () => {
  writeFileSync(file, 'clusters: {a: [127.0.0.11]}');
  const discovery = await discover({ pollMs: 20 });
  const first = discovery.snapshot().cluster('a')?.lastAnswerMs;
  await vi.waitFor(
    () => expect(discovery.snapshot().cluster('a')?.lastAnswerMs).toBeGreaterThan(first ?? Infinity),
    until,
  );
});

test('a file that is missing at the start, a folder, and a huge file are told and cover nothing', async () => {
  const missing = await discover();
  expect(missing.snapshot().clusters()).toEqual([]);
  mkdirSync(file);
  await discover();
  rmSync(file, { recursive: true });
  writeFileSync(file, '#'.repeat((1 << 20) + 1));
  await discover();
  expect(errors.map(({ code }) => code)).toEqual(
    expect.arrayContaining(['file_unreadable', 'file_unreadable', 'file_invalid']),
  );
});

test('the file wins over DNS for the clusters that it names, also if it names them later', async () => {
  const dns = cleanup.use(await DnsServer.start());
  dns.set('a.example.com', { kind: 'addresses', addresses: ['127.0.0.21'], ttlSeconds: 1 });
  writeFileSync(file, 'clusters: {a: [127.0.0.11]}');
  const discovery = await discover({ dnsPort: dns.port });
  discovery.watch('a');
  discovery.watch('b');
  await vi.waitFor(() => expect(listed(discovery, 'b')).toEqual(['127.0.0.21']), until);
  expect(listed(discovery, 'a')).toEqual(['127.0.0.11']);
  expect(discovery.snapshot().cluster('b')).toMatchObject({ source: 'dns', sameAsProxy: false });
  writeFileSync(file, 'clusters: {b: [127.0.0.12]}');
  await vi.waitFor(() => expect(listed(discovery, 'b')).toEqual(['127.0.0.12']), until);
  expect(
    discovery
      .snapshot()
      .clusters()
      .map(({ cluster }) => cluster),
  ).toEqual(['b']);
  discovery.watch('a');
  expect(discovery.snapshot().cluster('a')?.source).toBe('dns');
});
