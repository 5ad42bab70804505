import { attribute as a, type MetricAttribute } from '../../src/emit/attributes.ts';
import { type Metric, metrics } from '../../src/emit/names.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';

type MetricKey = keyof typeof metrics;
/** What a label must be, with Prometheus' sign: `="masked"`, `!~"aborted|unknown"`. */
export type Matchers = Partial<Record<MetricAttribute, string>>;

/** What the dashboard's variables choose; a metric without such a label is taken whole. */
const chosen: Matchers = {
  [a.cluster]: '=~"$cluster"',
  [a.reporterKind]: '="$kind"',
  [a.reporterWorkload]: '=~"$workload"',
};

/** Grafana's: long enough for a rate at any zoom. */
const window = '[$__rate_interval]';

export function label(name: MetricAttribute): string {
  return name.replaceAll('.', '_');
}

/** The series of a metric that the variables choose. `suffix`: of a histogram's parts. */
export function series(
  key: MetricKey,
  matchers: Matchers = {},
  suffix: '' | '_bucket' | '_count' | '_sum' = '',
): string {
  const metric: Metric = metrics[key];
  const own = Object.entries(chosen).filter(([name]) => metric.attributes.some((attribute) => attribute === name));
  const all = Object.entries({ ...Object.fromEntries(own), ...matchers });
  const text = all.map(([name, must]) => `${label(name as MetricAttribute)}${must}`).join(',');
  return `${prometheusName(metric)}${suffix}${text === '' ? '' : `{${text}}`}`;
}

export function by(operator: 'sum' | 'min' | 'max', names: readonly MetricAttribute[], inner: string): string {
  return names.length === 0
    ? `${operator}(${inner})`
    : `${operator} by (${names.map((name) => label(name)).join(', ')}) (${inner})`;
}

/** Per second, summed by labels. */
export function rate(
  names: readonly MetricAttribute[],
  key: MetricKey,
  matchers: Matchers = {},
  suffix: '' | '_count' | '_sum' = '',
): string {
  return by('sum', names, `rate(${series(key, matchers, suffix)}${window})`);
}

/** Of a histogram, in its unit. */
export function quantile(share: number, names: readonly MetricAttribute[], key: MetricKey): string {
  const buckets = `rate(${series(key, {}, '_bucket')}${window})`;
  return `histogram_quantile(${share}, sum by (${['le', ...names.map((name) => label(name))].join(', ')}) (${buckets}))`;
}
