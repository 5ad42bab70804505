import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { needPart } from '../support/part.ts';
import { until } from '../support/until.ts';

const backends = ['JAEGER_BIN', 'PROMETHEUS_BIN', 'ALERTMANAGER_BIN'] as const;
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
let child: ChildProcess | undefined;
let otlp: OtlpReceiver | undefined;

afterEach(async () => {
  child?.kill('SIGKILL');
  await otlp?.close();
});

function startDemo(args: string[], env: Record<string, string> = {}) {
  const demo = spawn(process.execPath, [main, 'demo', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child = demo;
  let output = '';
  const keep = (chunk: Buffer) => {
    output += chunk.toString();
  };
  demo.stdout.on('data', keep);
  demo.stderr.on('data', keep);
  const ended = once(demo, 'close').then(([code]) => code as number);
  return { pid: demo.pid ?? 0, output: () => output, ended, signal: (name: NodeJS.Signals) => demo.kill(name) };
}

/** Processes started by this one, and theirs. */
function descendants(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((id) => parentOf(id) === pid);
  return children.flatMap((id) => [id, ...descendants(id)]);
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}

it('plays the five scenarios, meets every shape, sends its spans where it is told, and exits with 0', async () => {
  otlp = await startOtlpReceiver();
  const demo = startDemo([], { OTEL_EXPORTER_OTLP_ENDPOINT: otlp.endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' });
  expect([await demo.ended, demo.output()]).toEqual([0, expect.stringContaining('Every shape was met.')]);
  for (const id of ['A1', 'A3', 'A5', 'B1', 'B2']) expect(demo.output()).toMatch(new RegExp(`^${id}  \\S`, 'm'));
  expect(demo.output()).toMatch(/effective 100\.0 % · first-try \d/);
  expect(demo.output()).toMatch(/stale pins to 127\.0\.0\.11:\d+, which left DNS [\d.]+ s ago/);
  const outcomes = new Set(otlp.spans.map((span) => span.attributes['sidelight.outcome']));
  expect(outcomes).toContain('masked');
  expect(new Set(otlp.spans.map((span) => span.attributes['sidelight.pin']))).toContain('stale');
  expect(demo.output()).toContain('In Jaeger');
});

it('with --backends shows the alert of a masked failure firing and resolved, and where each backend is', async (context) => {
  const env = Object.fromEntries(backends.map((name) => [name, needPart(context, name)]));
  // Nothing else may say where the spans go.
  const demo = startDemo(['--backends', '--keep'], { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: '' });
  await until('the scenarios to be played', () => demo.output().includes('Still running'), 110_000);
  const output = demo.output();
  expect(output).toMatch(/^AL .* 4 of 4$/m);
  expect(output).toMatch(/SidelightMaskedFailuresFast: .*firing in Alertmanager after [\d.]+ s/);
  expect(output).toMatch(/runbook \S+\/SidelightMaskedFailuresFast\.md/);
  expect(output).toMatch(/there Jaeger shows [1-9]\d* of them, such as [0-9a-f]{32}/);
  expect(output).toMatch(/the server is repaired: resolved after [\d.]+ s/);
  for (const name of ['Jaeger', 'Prometheus', 'Alertmanager']) {
    const url = new RegExp(`^  ${name} +(http://\\S+)`, 'm').exec(output)?.[1] ?? '';
    expect([name, (await fetch(url, { redirect: 'manual' })).status < 400]).toEqual([name, true]);
  }
  const started = descendants(demo.pid);
  demo.signal('SIGINT');
  expect(await demo.ended).toBe(0);
  await until('its processes to be gone', () => started.every((pid) => parentOf(pid) === undefined));
}, 130_000);

it('says of each backend that is missing how to get it, and goes on without', async () => {
  const none = Object.fromEntries(backends.map((name) => [name, '']));
  const demo = startDemo(['--backends'], { ...none, PATH: '' });
  await until('its first scenario', () => demo.output().includes('\nA1  '), 30_000);
  for (const name of backends) expect(demo.output()).toMatch(new RegExp(`No \\w+: set ${name}, .*To get it: `));
  demo.signal('SIGINT');
  expect(await demo.ended).toBe(130);
});

it('leaves no process behind when it is interrupted', async () => {
  const demo = startDemo([]);
  await until('its first scenario', () => demo.output().includes('\nA1  '), 30_000);
  const started = descendants(demo.pid);
  expect(started.length).toBeGreaterThanOrEqual(2);
  demo.signal('SIGINT');
  expect(await demo.ended).toBe(130);
  await until('its processes to be gone', () => started.every((pid) => parentOf(pid) === undefined));
});

it('leaves no process behind when it is killed', async () => {
  const demo = startDemo([]);
  await until('its first scenario', () => demo.output().includes('\nA1  '), 30_000);
  const started = descendants(demo.pid);
  expect(started.length).toBeGreaterThanOrEqual(2);
  demo.signal('SIGKILL');
  await until('its processes to be gone', () => started.every((pid) => parentOf(pid) === undefined));
});

it('stays up with traffic under --keep until it is interrupted, and prints where to look', async () => {
  const demo = startDemo(['--keep']);
  await until('the scenarios to be played', () => /The page: .*\n/.test(demo.output()), 55_000);
  const page = /The page: +(http:\/\/127\.0\.0\.1:\d+\/)\n/.exec(demo.output())?.[1] ?? '';
  expect(await (await fetch(page)).text()).toContain('<title>Sidelight</title>');
  const metrics = /http:\/\/127\.0\.0\.1:\d+\/metrics/.exec(demo.output())?.[0] ?? '';
  const before = await (await fetch(metrics)).text();
  await until('new traffic', async () => (await (await fetch(metrics)).text()) !== before);
  demo.signal('SIGINT');
  expect(await demo.ended).toBe(0);
});
