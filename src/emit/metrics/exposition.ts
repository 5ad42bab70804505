import type { Metric } from '../names.ts';
import { prometheusName } from '../prometheus-name.ts';
import type { Row } from './collect.ts';
import type { HistogramSeries, NumberSeries } from './series.ts';

/**
 * The text format 0.0.4 of one metric, piece by piece. By hand because the SDK's serializer, which a test compares this
 * with, took 2.5 s at a stretch for 3,000 clusters: long enough for every proxy to give up waiting for its tags.
 */
export function* exposition(metric: Metric, rows: readonly Row[]): Generator<string> {
  const name = prometheusName(metric);
  yield header(name, metric.description, metric.kind);
  if (metric.kind === 'histogram') {
    for (const { scope, series } of rows) yield histogram(name, scope.text, series as HistogramSeries);
  } else {
    for (const { scope, series } of rows)
      yield `${name}${braced(scope.text, series.kind.ownText)} ${(series as NumberSeries).value}\n`;
  }
}

export function header(name: string, description: string, kind: string): string {
  return `# HELP ${name} ${description}\n# TYPE ${name} ${kind}\n`;
}

function histogram(name: string, scopeText: string, series: HistogramSeries): string {
  const { kind, counts, sum, count } = series;
  const labels = joined(scopeText, kind.ownText);
  const within = labels === '' ? '' : `${labels},`;
  let text = `${name}_count${braced(labels, '')} ${count}\n${name}_sum${braced(labels, '')} ${sum}\n`;
  let below = 0;
  counts.forEach((bucket, index) => {
    below += bucket;
    text += `${name}_bucket{${within}le="${kind.metric.buckets?.[index] ?? '+Inf'}"} ${below}\n`;
  });
  return text;
}

function braced(scopeText: string, ownText: string): string {
  const labels = joined(scopeText, ownText);
  return labels === '' ? '' : `{${labels}}`;
}

function joined(scopeText: string, ownText: string): string {
  return scopeText === '' || ownText === '' ? scopeText + ownText : `${scopeText},${ownText}`;
}
