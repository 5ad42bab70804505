import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { Emit } from '../../src/emit/create-emit.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { queryOf, readDoc } from '../support/doc-tables.ts';
import { clearedPin, clusterView, pinLife, scraped, scrapeText, testEmit } from '../support/emit.ts';
import { reporter } from '../support/entries.ts';
import { attempt, ip, judged, masked } from '../support/judged.ts';
import { needPart } from '../support/part.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

it('promtool takes the scrape, and has nothing to say about its names', (context) => {
  const promtool = needPart(context, 'PROMTOOL');
  const emit = testEmit({
    sources: {
      eventLoopLagMs: () => 1,
      pins: () => [
        {
          reporter,
          cluster: 'app',
          endpoint: '127.0.0.1:80',
          layer: 'tcp',
          pin: 'stale',
          ageMs: 1,
          expected: true,
        },
      ],
      unused: () => new Map([['app', 1]]),
      coverage: () => [{ profile: 'full', reporters: 1, silent: 1, lastEntryMs: 0 }],
    },
  });
  emit.exchange(masked());
  emit.pinEvent('opened', pinLife());
  emit.pinEvent('cleared', clearedPin());
  const checked = spawnSync(promtool, ['check', 'metrics'], { input: scrapeText(emit), encoding: 'utf8' });
  expect(`${checked.stdout}${checked.stderr}`).toBe('');
  expect(checked.status).toBe(0);
});

const page = readDoc('reference/metrics.md');

interface Expected {
  /** Labels without `sidelight_`. */
  labels: Record<string, string>;
  value: number;
}

/** What promtool says of queries of the docs. A counter is taken to have grown by its value each 15 s, a gauge to have stood. */
function evaluated(promtool: string, emit: Emit, expected: Record<string, Expected[]>): string {
  const input_series = [...scraped(emit).values()]
    .filter(({ type, name }) => type !== 'histogram' && name !== 'target_info')
    .flatMap(({ type, samples }) =>
      samples.map(({ name, labels, value }) => ({
        series: `${name}${braced(labels)}`,
        values: type === 'counter' ? `0+${value}x60` : `${value}+0x60`,
      })),
    );
  const promql_expr_test = Object.entries(expected).map(([name, samples]) => ({
    expr: queryOf(page, name),
    eval_time: '10m',
    exp_samples: samples.map(({ labels, value }) => ({
      labels: braced(Object.fromEntries(Object.entries(labels).map(([key, text]) => [`sidelight_${key}`, text]))),
      value,
    })),
  }));
  const file = path.join(cleanup.use(tempDir()).path, 'queries.yaml');
  const tests = [{ interval: '15s', input_series, promql_expr_test }];
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ evaluation_interval: '15s', tests }));
  const { stdout, stderr, status } = spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' });
  return `${stdout}${stderr}${status}`;
}

function braced(labels: Readonly<Record<string, string>>): string {
  return `{${Object.entries(labels)
    .map(([key, text]) => `${key}="${text}"`)
    .join(',')}}`;
}

it('Prometheus computes from the queries of the docs what was measured: B1', (context) => {
  const promtool = needPart(context, 'PROMTOOL');
  const emit = testEmit();
  for (let i = 0; i < 40; i += 1) emit.exchange(judged());
  for (let i = 0; i < 46; i += 1) emit.exchange(masked());
  const ofApp = (value: number) => [{ labels: { cluster: 'app' }, value }];
  const said = evaluated(promtool, emit, {
    effective: ofApp(1),
    'first-try': ofApp(40 / 86),
    masked: ofApp(46 / 86),
    actual: ofApp(86 / 132),
    amplification: ofApp(132 / 86),
    aborted: ofApp(0),
  });
  expect(said).toMatch(/SUCCESS\s*0$/);
});

it('Prometheus computes from the queries of the docs which layer multiplies: E1', (context) => {
  const promtool = needPart(context, 'PROMTOOL');
  const emit = testEmit();
  const kinds = ['sidecar_outbound', 'waypoint', 'sidecar_inbound'] as const;
  const three = Array(3).fill(attempt());
  for (const [index, kind] of kinds.entries())
    for (let i = 0; i < 3 ** index; i += 1)
      emit.exchange(
        judged({ exchange: { reporter: { ...reporter, kind }, attempts: kind === 'waypoint' ? [attempt()] : three } }),
      );
  const layer = { reporter_workload: 'shop', reporter_namespace: 'default' };
  const said = evaluated(promtool, emit, {
    'amplification-by-layer': [
      { labels: { ...layer, reporter_kind: 'sidecar_outbound' }, value: 3 },
      { labels: { ...layer, reporter_kind: 'waypoint' }, value: 1 },
      { labels: { ...layer, reporter_kind: 'sidecar_inbound' }, value: 3 },
    ],
  });
  expect(said).toMatch(/SUCCESS\s*0$/);
});

it('Prometheus computes from the queries of the docs who is still on the old endpoint', (context) => {
  const promtool = needPart(context, 'PROMTOOL');
  const old = { reporter, cluster: 'app', endpoint: '127.0.0.11:8080', layer: 'http' as const, expected: false };
  const emit = testEmit({
    sources: {
      pins: () => [
        { ...old, pin: 'stale', ageMs: 7000 },
        { ...old, pin: 'stale', ageMs: 9000 },
        { ...old, pin: 'draining', ageMs: 60_000 },
        { ...old, cluster: 'wanted', layer: 'tcp', pin: 'stale', ageMs: 80_000, expected: true },
      ],
      discovery: () => ({
        clusters: () => [
          clusterView({ listed: new Map(['11', '12', '13', '14'].map((end) => [`127.0.0.${end}`, 0])) }),
        ],
        cluster: () => undefined,
        proxy: () => undefined,
        proxies: () => [],
      }),
      unused: () =>
        new Map([
          ['app', 2],
          ['busy', 0],
        ]),
      coverage: () => [
        { profile: 'full', reporters: 1, silent: 1, lastEntryMs: undefined },
        { profile: 'tag', reporters: 1, silent: 0, lastEntryMs: undefined },
      ],
    },
  });
  // Per 15 s: 45 attempts, 15 of them to .12; 30 requests and 1500 bytes to .11.
  for (let i = 0; i < 30; i += 1) emit.exchange(judged());
  for (let i = 0; i < 15; i += 1)
    emit.exchange(judged({ exchange: { attempts: [attempt({ peer: ip('127.0.0.12:8080') })] } }));
  emit.pinUse({ reporter, cluster: 'app', endpoint: old.endpoint, requests: 30, bytes: 1500 });
  const place = { cluster: 'app', endpoint: old.endpoint, reporter_kind: 'envoy', reporter_workload: 'shop' };
  const said = evaluated(promtool, emit, {
    'drain-bytes': [{ labels: place, value: 100 }],
    'drain-requests': [{ labels: place, value: 2 }],
    'unexpected-pins': [{ labels: place, value: 2 }],
    'oldest-unexpected-pin': [{ labels: place, value: 9 }],
    share: [
      { labels: { cluster: 'app', endpoint: '127.0.0.11:8080' }, value: (30 / 45) * 4 },
      { labels: { cluster: 'app', endpoint: '127.0.0.12:8080' }, value: (15 / 45) * 4 },
    ],
    connections: [{ labels: { cluster: 'wanted', endpoint: old.endpoint }, value: 1 }],
    unused: [{ labels: { cluster: 'app' }, value: 2 }],
    silent: [{ labels: { profile: 'full' }, value: 1 }],
  });
  expect(said).toMatch(/SUCCESS\s*0$/);
});
