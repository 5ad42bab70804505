import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DiscoveryOptions } from '../../src/discovery/discovery.ts';
import { type SavedSubject, savedSubjects } from '../../src/discovery/saved.ts';
import { judgePin } from '../../src/judge/pin.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import type { ClusterView } from '../../src/model/view.ts';
import { type DnsOptions, discovering, dnsOptions, noRule } from '../support/discovery.ts';

/* What one run leaves to the next. */

let cleanup: Cleanup;
let dns: DnsServer;

beforeEach(async () => {
  cleanup = new Cleanup();
  dns = cleanup.use(await DnsServer.start());
});

afterEach(async () => {
  await cleanup.run();
});

const cluster = 'outbound|443||a.example.com';
const until = { timeout: 5000, interval: 10 };
const answer = (...addresses: string[]) => dns.set('a.example.com', { kind: 'addresses', addresses, ttlSeconds: 60 });

function run(
  restored: readonly SavedSubject[],
  given: Partial<DiscoveryOptions> = {},
  change: Partial<DnsOptions> = {},
) {
  // Through JSON, as a file keeps it.
  const kept = savedSubjects.parse(JSON.parse(JSON.stringify(restored)));
  const found = discovering(cleanup, { dns: dnsOptions([`127.0.0.1:${dns.port}`], change), restored: kept, ...given });
  return { ...found, view: (name = cluster) => found.discovery.snapshot().cluster(name) };
}

/** A run in which 127.0.0.11 left, and 127.0.0.12 and .13 are listed. */
async function firstRun() {
  answer('127.0.0.11', '127.0.0.12', '127.0.0.13');
  const first = run([]);
  first.discovery.watch(cluster);
  await vi.waitFor(() => expect(first.view()?.listed.size).toBe(3), until);
  answer('127.0.0.12', '127.0.0.13');
  await vi.waitFor(() => expect(first.view()?.left.size).toBe(1), until);
  first.discovery.stop();
  return { saved: first.discovery.state(), view: first.view() as ClusterView };
}

function pinOf(view: ClusterView | undefined, ip: string, nowMs: number, openedMs = 1) {
  const endpoint = { text: `${ip}:80`, kind: 'ip', ip, port: 80 } as const;
  const facts = { view, endpoint, connectionOpenedMs: openedMs, requestStartMs: nowMs, nowMs, clockUncertaintyMs: 0 };
  return judgePin(facts);
}

test('a subject goes on where it was when it is watched again; what is not watched is kept and not asked for', async () => {
  const { saved, view: before } = await firstRun();
  expect(saved).toMatchObject([{ source: 'dns', host: 'a.example.com' }]);
  const next = run(saved);
  expect(next.view()).toBeUndefined();
  expect(next.discovery.state()).toEqual(saved);
  next.discovery.watch(cluster);
  expect(next.view()).toMatchObject({
    firstAnswerMs: before.firstAnswerMs,
    lastAnswerMs: before.lastAnswerMs,
    listed: before.listed,
    left: before.left,
    graceMs: 60_500,
    changes: { added: 0, removed: 0 },
  });
  await vi.waitFor(() => expect(next.view()?.lastAnswerMs).toBeGreaterThan(before.lastAnswerMs ?? Infinity), until);
  expect(next.view()).toMatchObject({ listed: before.listed, left: before.left, firstAnswerMs: before.firstAnswerMs });
  expect(next.changes).toEqual([]);
});

test('until there is an answer the old one is as old as it is: nothing is current by it when it is stale', async () => {
  const { saved, view: before } = await firstRun();
  dns.set('a.example.com', { kind: 'drop' });
  const next = run(saved, { now: () => Date.now() + 3_600_000 });
  next.discovery.watch(cluster);
  const nowMs = Date.now() + 3_600_000;
  for (const ip of ['127.0.0.11', '127.0.0.12'])
    expect(pinOf(next.view(), ip, nowMs)).toMatchObject({ pin: 'unknown', reason: 'source_stale' });
  await vi.waitFor(() => expect(next.errors.length).toBeGreaterThan(0), until);
  expect(next.view()).toMatchObject({ lastAnswerMs: before.lastAnswerMs, listed: before.listed });
  answer('127.0.0.12', '127.0.0.13');
  await vi.waitFor(() => expect(pinOf(next.view(), '127.0.0.12', nowMs).pin).toBe('current'), until);
  expect(pinOf(next.view(), '127.0.0.11', nowMs)).toMatchObject({
    pin: 'stale',
    leftAtMs: before.left.get('127.0.0.11'),
  });
});

test('what vanished in between leaves at the first answer, with the grace of the old TTL', async () => {
  const { saved } = await firstRun();
  dns.set('a.example.com', { kind: 'addresses', addresses: ['127.0.0.13'], ttlSeconds: 1 });
  const next = run(saved);
  const startedMs = Date.now();
  next.discovery.watch(cluster);
  await vi.waitFor(() => expect(next.changes).toMatchObject([{ removed: ['127.0.0.12'], added: [] }]), until);
  expect(next.view()?.left.get('127.0.0.12')).toBeGreaterThanOrEqual(startedMs);
  expect(next.view()?.graceMs).toBe(60_500);
  expect(next.view()?.changes).toEqual({ added: 0, removed: 1 });
});

test('a family that fails right after the start holds what it said before', async () => {
  answer('127.0.0.11');
  dns.set('a.example.com', { kind: 'addresses', addresses: ['::1'], ttlSeconds: 1 }, 'AAAA');
  const first = run([]);
  first.discovery.watch(cluster);
  await vi.waitFor(() => expect(first.view()?.listed.size).toBe(2), until);
  first.discovery.stop();
  dns.set('a.example.com', { kind: 'servfail' }, 'AAAA');
  const next = run(first.discovery.state());
  next.discovery.watch(cluster);
  await vi.waitFor(() => expect(next.errors.length).toBeGreaterThan(0), until);
  expect([...(next.view()?.listed.keys() ?? [])]).toEqual(['127.0.0.11', '::1']);
});

test('a name that is gone after the restart is believed to be gone, when it is said twice', async () => {
  const { saved } = await firstRun();
  dns.set('a.example.com', { kind: 'nxdomain' });
  const next = run(saved);
  next.discovery.watch(cluster);
  await vi.waitFor(() => expect(next.changes).toMatchObject([{ removed: ['127.0.0.12', '127.0.0.13'] }]), until);
});

test('after a clock that was set back nothing is younger than now', async () => {
  const { saved } = await firstRun();
  dns.set('a.example.com', { kind: 'drop' });
  const backMs = Date.now() - 3_600_000;
  const next = run(saved, { now: () => backMs });
  next.discovery.watch(cluster);
  const { firstAnswerMs, lastAnswerMs, left } = next.view() ?? {};
  expect([firstAnswerMs, lastAnswerMs, left?.get('127.0.0.11')]).toEqual([backMs, backMs, backMs]);
});

test('in a window, what was listed before the restart has its whole time after it', async () => {
  const { saved } = await firstRun();
  answer('127.0.0.14');
  const next = run(saved, { rule: () => ({ ...noRule, windowMs: 60_000 }) });
  next.discovery.watch(cluster);
  await vi.waitFor(() => expect(next.view()?.listed.has('127.0.0.14')).toBe(true), until);
  expect([...(next.view()?.listed.keys() ?? [])].toSorted()).toEqual([11, 12, 13, 14].map((i) => `127.0.0.${i}`));
});

test('what nobody looked at for a day is not kept any longer', async () => {
  const { saved } = await firstRun();
  expect(run(saved, { now: () => Date.now() + 80_000_000 }).discovery.state()).toHaveLength(1);
  expect(run(saved, { now: () => Date.now() + 90_000_000 }).discovery.state()).toEqual([]);
});

test("a file's clusters go on; a cluster that it no longer names does not; another file's are not its own", async () => {
  const folder = cleanup.use(tempDir()).path;
  const file = path.join(folder, 'endpoints.yaml');
  const options = { dns: undefined, file: { path: file, staleAfterMs: 1000, pollMs: 50 } };
  writeFileSync(file, 'clusters: {a: [127.0.0.11, 127.0.0.12], b: [127.0.0.1]}');
  const first = run([], options);
  await first.discovery.start();
  const sinceMs = first.view('a')?.listed.get('127.0.0.12');
  first.discovery.stop();
  const saved = first.discovery.state();
  writeFileSync(file, 'clusters: {a: [127.0.0.12]}');
  const next = run(saved, options);
  await next.discovery.start();
  expect(next.view('a')).toMatchObject({
    firstAnswerMs: first.view('a')?.firstAnswerMs,
    listed: new Map([['127.0.0.12', sinceMs]]),
    left: new Map([['127.0.0.11', next.view('a')?.lastAnswerMs]]),
  });
  expect(next.changes).toMatchObject([{ cluster: 'a', removed: ['127.0.0.11'] }]);
  expect(next.view('b')).toBeUndefined();
  expect(next.discovery.state().map((subject) => subject.source === 'file' && subject.cluster)).toEqual(['a']);
  const moved = path.join(folder, 'moved.yaml');
  writeFileSync(moved, 'clusters: {a: [127.0.0.12]}');
  const other = run(saved, { ...options, file: { ...options.file, path: moved } });
  await other.discovery.start();
  expect(other.changes).toEqual([]);
});

test('a file that is bad at the start still covers the clusters that it covered: unknown, and no lesser source', async () => {
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  const options = { file: { path: file, staleAfterMs: 100, pollMs: 50 } };
  writeFileSync(file, `clusters: {"${cluster}": [127.0.0.11]}`);
  const first = run([], options);
  await first.discovery.start();
  first.discovery.stop();
  writeFileSync(file, 'clusters: 7');
  answer('127.0.0.11');
  const next = run(first.discovery.state(), options);
  await next.discovery.start();
  next.discovery.watch(cluster);
  expect(next.view()).toMatchObject({ source: 'file', lastError: expect.stringContaining('expected') });
  const nowMs = Date.now() + 101;
  expect(pinOf(next.view(), '127.0.0.11', nowMs)).toMatchObject({ pin: 'unknown', reason: 'source_stale' });
});
