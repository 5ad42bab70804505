import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { queryOf, readDoc } from '../support/doc-tables.ts';
import { scraped, scrapeText, testEmit } from '../support/emit.ts';
import { reporter } from '../support/entries.ts';
import { judged, masked } from '../support/judged.ts';
import { needPart } from '../support/part.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

it('promtool takes the scrape, and has nothing to say about its names', (context) => {
  const promtool = needPart(context, 'PROMTOOL');
  const emit = testEmit({
    sources: {
      eventLoopLagMs: () => 1,
      pins: () => [{ reporter, cluster: 'app', endpoint: '127.0.0.1:80', layer: 'tcp', pin: 'stale', ageMs: 1 }],
    },
  });
  emit.exchange(masked());
  const checked = spawnSync(promtool, ['check', 'metrics'], { input: scrapeText(emit), encoding: 'utf8' });
  expect(`${checked.stdout}${checked.stderr}`).toBe('');
  expect(checked.status).toBe(0);
});

it('Prometheus computes from the queries of the docs what was measured: B1', (context) => {
  const promtool = needPart(context, 'PROMTOOL');
  const emit = testEmit();
  for (let i = 0; i < 40; i += 1) emit.exchange(judged());
  for (let i = 0; i < 46; i += 1) emit.exchange(masked());
  const series = [...scraped(emit).values()]
    .flatMap(({ samples }) => samples)
    .filter(({ name }) => /^sidelight_(?:requests|attempts|attempted_requests)_total$/.test(name))
    .map(({ name, labels, value }) => {
      const text = Object.entries(labels).map(([key, label]) => `${key}="${label}"`);
      return { series: `${name}{${text.join(',')}}`, values: `0+${value}x10` };
    });
  const page = readDoc('reference/metrics.md');
  const expected = {
    effective: 1,
    'first-try': 40 / 86,
    masked: 46 / 86,
    actual: 86 / 132,
    amplification: 132 / 86,
    aborted: 0,
  };
  const promql_expr_test = Object.entries(expected).map(([name, value]) => ({
    expr: queryOf(page, name),
    eval_time: '10m',
    exp_samples: [{ labels: '{sidelight_cluster="app"}', value }],
  }));
  const dir = cleanup.use(tempDir());
  const file = path.join(dir.path, 'rates.yaml');
  // JSON is YAML.
  writeFileSync(
    file,
    JSON.stringify({ evaluation_interval: '1m', tests: [{ interval: '1m', input_series: series, promql_expr_test }] }),
  );
  const tested = spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' });
  expect(`${tested.stdout}${tested.stderr}`).toMatch(/SUCCESS/);
  expect(tested.status).toBe(0);
});
