import { attribute, type MetricAttribute } from '../emit/attributes.ts';
import { type Metric, metrics } from '../emit/names.ts';
import { prometheusName } from '../emit/prometheus-name.ts';

type MetricKey = keyof typeof metrics;
type AttributeOf<K extends MetricKey> = (typeof metrics)[K]['attributes'][number];

/** What a label must be: one of these texts, or none of them. The empty text: the label is not there. */
export interface Match {
  not: boolean;
  values: readonly string[];
}

export function is(...values: string[]): Match {
  return { not: false, values };
}

export function isNot(...values: string[]): Match {
  return { not: true, values };
}

/** A selector in Prometheus' names. Only labels that the metric has can be asked for. */
export function series<K extends MetricKey>(metric: K, matches: Partial<Record<AttributeOf<K>, Match>> = {}): string {
  const known: Metric = metrics[metric];
  const matchers = Object.entries<Match | undefined>(matches).flatMap(([name, match]) =>
    match === undefined ? [] : [matcher(name, match)],
  );
  return `${prometheusName(known)}${matchers.length === 0 ? '' : `{${matchers.join(',')}}`}`;
}

/** Some labels of recorded series. */
export function recorded(record: string, matches: Partial<Record<MetricAttribute, Match>>): string {
  const matchers = Object.entries(matches).map(([name, match]) => matcher(name, match));
  return `${record}{${matchers.join(',')}}`;
}

function matcher(name: string, { not, values }: Match): string {
  const sign = values.length === 1 ? (not ? '!=' : '=') : not ? '!~' : '=~';
  return `${label(name)}${sign}"${values.join('|')}"`;
}

/** Prometheus' name of a label. */
export function label(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9]/g, '_');
}

/** `by (…)` or `on (…)`, in Prometheus' names. */
export function labels(word: 'by' | 'on', names: readonly MetricAttribute[]): string {
  return `${word} (${names.map((name) => label(name)).join(', ')})`;
}

/** Whose traffic it is. The reporter's kind is always among them: one call may be seen by proxies of three kinds. */
export const place = [
  attribute.cluster,
  attribute.reporterKind,
  attribute.reporterNamespace,
  attribute.reporterWorkload,
] as const;
export const endpointPlace = [...place, attribute.endpoint] as const;
export const pinPlace = [...endpointPlace, attribute.layer] as const;
