import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { alertGroups } from '../../src/monitoring/build.ts';

/** What is there at some minute. */
interface Scene {
  /** promtool's notation of time. */
  at: string;
  /** Between two samples; absent: a minute. Long ones would take minutes else. */
  every?: string;
  /** Series without the labels of their target → values. */
  series: Record<string, string>;
  /** `nobody`: not even a Sidelight that answers. */
  with?: 'nobody';
}

export interface AlertCase {
  alert: string;
  fires: Scene & {
    /** Beside `severity`; absent: those of PLACE. */
    labels?: Record<string, string>;
    summary: string;
    description: string;
    traces?: string;
  };
  quiet?: (Scene & { why: string })[];
}

export const placeLabels = {
  sidelight_cluster: 'app',
  sidelight_reporter_kind: 'envoy',
  sidelight_reporter_namespace: 'store',
  sidelight_reporter_workload: 'shop',
} as const;

/** Which labels of a target Prometheus adds. */
export const paths = {
  scrape: 'instance="10.0.0.2:9464",job="sidelight"',
  OTLP: 'instance="2f9d7c2e",job="sidelight",otel_scope_name="sidelight"',
} as const;
export type Path = keyof typeof paths;

const file = new URL('../fixtures/prometheus/alerts.yaml', import.meta.url);

/** Every value is a text: `0x10` is ten zeros more, no number. */
export const alertCases = parse(readFileSync(file, 'utf8'), { schema: 'failsafe' }) as AlertCase[];

/** A test of `promtool test rules`: the alert fires as the case says. */
export function firingTest({ alert, fires }: AlertCase, path: Path): object {
  const severity = Object.values(alertGroups)
    .flat()
    .find(({ name }) => name === alert)?.severity;
  const { summary, description, traces } = fires;
  const exp_annotations = {
    summary,
    description,
    runbook_url: `docs/runbooks/${alert}.md`,
    ...(traces === undefined ? {} : { traces_url: traces }),
  };
  // What is named beside PLACE comes on top; without a place in the series there is none in the alert.
  const ofPlace = traces === undefined ? {} : placeLabels;
  const exp_labels = { ...ofPlace, ...fires.labels, severity };
  return promtoolTest(`${alert} fires`, alert, fires, path, [{ exp_labels, exp_annotations }]);
}

/** Tests in which it must not fire. */
export function quietTests({ alert, quiet = [] }: AlertCase, path: Path): object[] {
  return quiet.map((scene) => promtoolTest(`${alert} is quiet: ${scene.why}`, alert, scene, path, []));
}

function promtoolTest(name: string, alertname: string, scene: Scene, path: Path, exp_alerts: object[]): object {
  const answers = scene.with === 'nobody' ? {} : { sidelight_self_series: '10x200' };
  return {
    name,
    interval: scene.every ?? '1m',
    input_series: inputSeries({ ...answers, ...scene.series }, path),
    alert_rule_test: [{ alertname, eval_time: scene.at, exp_alerts }],
  };
}

/** As promtool wants them, with the labels of the target. */
export function inputSeries(series: Record<string, string>, path: Path): { series: string; values: string }[] {
  const place = Object.entries(placeLabels).map(([key, text]) => `${key}="${text}"`);
  return Object.entries(series).map(([text, values]) => ({
    series: withTarget(text.replace('PLACE', place.join(',')), paths[path]),
    values,
  }));
}

function withTarget(series: string, target: string): string {
  if (series.includes('job="')) return series;
  return series.includes('{') ? series.replace('}', `,${target}}`) : `${series}{${target}}`;
}
