import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { alertGroups, buildRules } from '../../src/monitoring/build.ts';
import { renderRules } from '../../src/monitoring/render.ts';
import { readDoc } from '../support/doc-tables.ts';
import { needPart } from '../support/part.ts';
import {
  alertCases,
  firingTest,
  inputSeries,
  type Path,
  paths,
  placeLabels,
  quietTests,
} from '../support/prometheus-cases.ts';

/* The rules that are shipped, as promtool evaluates them. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const ruleFiles = ['rules', 'alerts'].map((name) =>
  fileURLToPath(new URL(`../../monitoring/prometheus/${name}.yaml`, import.meta.url)),
);
const ways = Object.keys(paths) as Path[];
/** Prometheus evaluates groups side by side; here one after the other, so that what is new in one is in the next. */
const rules = buildRules();
const group_eval_order = [...rules.recording, ...rules.alerts].map(({ name }) => name);

function promtool(context: TestContext, args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(needPart(context, 'PROMTOOL'), args, { encoding: 'utf8' });
  return `${stdout}${stderr}exit code ${status}`;
}

function testRules(context: TestContext, tests: object[], every = '1m'): string {
  const file = path.join(cleanup.use(tempDir()).path, 'tests.yaml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ rule_files: ruleFiles, evaluation_interval: every, group_eval_order, tests }));
  return promtool(context, ['test', 'rules', file]);
}

const passed = /SUCCESS\s*exit code 0$/;

it('promtool takes the rules, also when every time is shorter', (context) => {
  const dir = cleanup.use(tempDir()).path;
  const short = buildRules({ timeScale: 1 / 60 });
  const files = (['recording', 'alerts'] as const).map((form) => {
    const file = path.join(dir, `${form}.yaml`);
    writeFileSync(file, renderRules(short, form));
    return file;
  });
  const said = promtool(context, ['check', 'rules', ...ruleFiles, ...files]);
  expect(said).toMatch(/exit code 0$/);
  expect(said.match(/SUCCESS: \d+ rules found/g)).toHaveLength(4);
});

it('promtool takes every query of the runbooks', (context) => {
  const queries = Object.values(alertGroups)
    .flat()
    .flatMap(({ name }) =>
      [...readDoc(`runbooks/${name}.md`).matchAll(/```promql\n(?<query>[^`]*)```/g)].map(
        ({ groups }) => groups?.['query'],
      ),
    );
  expect(queries.length).toBeGreaterThan(20);
  const file = path.join(cleanup.use(tempDir()).path, 'queries.yaml');
  const ofQueries = queries.map((expr, index) => ({ record: `query_${index}`, expr }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules: ofQueries }] }));
  expect(promtool(context, ['check', 'rules', file])).toMatch(/exit code 0$/);
});

it('a case that is not met is told: the tests below can fail', (context) => {
  const [first] = alertCases;
  if (first === undefined) throw new Error('there is no case');
  const wrong = { ...first, fires: { ...first.fires, description: 'another' } };
  expect(testRules(context, [firingTest(wrong, 'scrape')])).toMatch(/FAILED[^]*exit code 1$/);
});

it.for(alertCases.map((one, index) => [`${one.alert} (${index + 1})`, one] as const))(
  '%s fires with its numbers and not otherwise, scraped or over OTLP',
  ([, one], context) => {
    const tests = [...ways.map((way) => firingTest(one, way)), ...quietTests(one, 'scrape')];
    expect(testRules(context, tests, one.fires.every)).toMatch(passed);
  },
);

it.for(ways)(
  'what is recorded are the rates of the measured scenario B1, and who is on an old endpoint: %s',
  (by, context) => {
    const endpoint = (end: string) => `sidelight_endpoint="10.0.0.${end}:80"`;
    const attempts = (end: string, result: string) =>
      `sidelight_attempts_total{PLACE,${endpoint(end)},sidelight_result="${result}"}`;
    const requests = (outcome: string) => `sidelight_requests_total{PLACE,sidelight_outcome="${outcome}"}`;
    const pins = (pin: string) => `{PLACE,${endpoint('9')},sidelight_layer="http",sidelight_pin="${pin}"}`;
    const input_series = inputSeries(
      {
        [requests('ok')]: '0+40x30',
        [requests('masked')]: '0+46x30',
        [requests('aborted')]: '0+14x30',
        'sidelight_attempted_requests_total{PLACE}': '0+86x30',
        [attempts('7', 'ok')]: '0+86x30',
        [attempts('8', 'failed')]: '0+46x30',
        'sidelight_endpoint_listed{sidelight_cluster="app",sidelight_source="dns"}': '2x30',
        [`sidelight_pins${pins('stale')}`]: '2x30',
        [`sidelight_pins${pins('draining')}`]: '1x30',
        [`sidelight_pin_oldest_seconds${pins('stale')}`]: '900x30',
        [`sidelight_pin_oldest_seconds${pins('draining')}`]: '5000x30',
        [`sidelight_pin_bytes_total{PLACE,${endpoint('9')}}`]: '0+6000x30',
        [`sidelight_pin_requests_total{PLACE,${endpoint('9')}}`]: '0+60x30',
      },
      by,
    );
    const at = (labels: Record<string, string> = {}) =>
      `{${Object.entries({ ...placeLabels, ...labels })
        .map(([key, text]) => `${key}="${text}"`)
        .join(',')}}`;
    const onNine = { sidelight_endpoint: '10.0.0.9:80' };
    const pinned = { ...onNine, sidelight_layer: 'http' };
    const expected: [string, string, number][] = [
      ['sidelight:effective:ratio5m', at(), 1],
      ['sidelight:first_try:ratio5m', at(), 40 / 86],
      ['sidelight:masked:ratio5m', at(), 46 / 86],
      ['sidelight:masked:ratio1h', at(), 46 / 86],
      ['sidelight:masked:ratio2h', at(), 46 / 86],
      ['sidelight:masked:ratio1d', at(), 46 / 86],
      ['sidelight:actual:ratio5m', at(), 86 / 132],
      ['sidelight:amplification:ratio5m', at(), 132 / 86],
      ['sidelight:aborted:ratio5m', at(), 0.14],
      ['sidelight:exhausted:ratio5m', at(), 0],
      ['sidelight:stale_pins:sum', at(pinned), 2],
      ['sidelight:left_pins:sum', at(pinned), 3],
      ['sidelight:stale_pin_age_seconds:max', at(pinned), 900],
      ['sidelight:pin_bytes:rate5m', at(onNine), 100],
      ['sidelight:pin_requests:rate5m', at(onNine), 1],
    ];
    const shares = [
      [at({ sidelight_endpoint: '10.0.0.7:80' }), (86 / 132) * 2],
      [at({ sidelight_endpoint: '10.0.0.8:80' }), (46 / 132) * 2],
    ] as const;
    const promql_expr_test = [
      ...expected
        // There is no failure that was tried again, and so no series of one.
        .filter(([, , value]) => value > 0)
        .map(([record, labels, value]) => ({
          // Rounded: promtool compares the last bit too.
          expr: `round(${record}, 1e-6)`,
          eval_time: '20m',
          exp_samples: [{ labels, value: Number(value.toFixed(6)) }],
        })),
      {
        expr: 'round(sidelight:endpoint_share:ratio5m, 1e-6)',
        eval_time: '20m',
        exp_samples: shares.map(([labels, value]) => ({ labels, value: Number(value.toFixed(6)) })),
      },
    ];
    expect(testRules(context, [{ interval: '1m', input_series, promql_expr_test }])).toMatch(passed);
  },
);
