import { expect, it } from 'vitest';
import { rows } from '../../monitoring/grafana/dashboard.ts';
import { attribute } from '../../src/emit/attributes.ts';
import { type Metric, metrics } from '../../src/emit/names.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';
import { dashboardQueries } from '../support/dashboard.ts';

const queries = dashboardQueries();
const labels = Object.values(attribute).map((name) => name.replaceAll(/[^a-z]/g, '_'));
const series = Object.values<Metric>(metrics).flatMap((metric) => {
  const name = prometheusName(metric);
  return metric.kind === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name];
});

it.each(queries)('$panel, $legend: has names that are exported, and no others', ({ expr, legend }) => {
  const names = expr.match(/\bsidelight_\w+/g) ?? [];
  expect(names.filter((name) => series.includes(name)).length).toBeGreaterThan(0);
  expect(names.filter((name) => !series.includes(name) && !labels.includes(name))).toEqual([]);
  for (const label of legend.match(/\bsidelight_\w+/g) ?? []) expect(expr).toContain(label);
});

it.each(queries)('$panel, $legend: chooses one kind of reporter, if its metric has one', ({ expr }) => {
  for (const [, name = '', matchers = ''] of expr.matchAll(/\b(sidelight_\w+)\{([^}]*)\}/g)) {
    const metric = Object.values<Metric>(metrics).find((each) => name.startsWith(prometheusName(each)));
    const byKind = metric?.attributes.includes(attribute.reporterKind) === true;
    expect(matchers.includes('sidelight_reporter_kind="$kind"')).toBe(byKind);
  }
});

it('says of every panel what it means, in a title that no other has', () => {
  const panels = rows.flatMap((row) => row.panels);
  expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  for (const { says, targets } of panels) expect([says.endsWith('.'), targets.length > 0]).toEqual([true, true]);
});

/** Metrics that no panel shows, each with the reason. */
const notShown: Record<string, string> = {
  requestDuration: 'the latency of a service is on its own dashboard; what masking adds to it is here',
  retriedRequests: 'of profile tag only, which cannot say what was masked',
  tcpConnections: 'nothing can retry them: they mask nothing',
  connectionAge: 'old connections are no fault; those to endpoints that left are here',
  pinRequests: 'bytes show HTTP and TCP alike',
  pinEvents: 'what lives now is here; the lives are traces',
  discoveryChanges: 'a change by itself is no fault',
  selfStreams: 'how many there are says nothing by itself',
  selfMessages: 'load, not health',
  selfJoinEvents: 'usual under load; what is not whole because of it is here',
  selfAttemptMismatches: 'the entries decide: it harms nothing',
  selfSpansKept: 'load, not health',
  selfSeries: 'bounded; what does not fit is here',
};

it('shows every metric, or there is a reason', () => {
  const all = queries.map(({ expr }) => expr).join('\n');
  const shown = Object.entries<Metric>(metrics).filter(([, metric]) =>
    new RegExp(`\\b${prometheusName(metric)}(?:_bucket|_count|_sum)?\\b`).test(all),
  );
  expect([...shown.map(([key]) => key), ...Object.keys(notShown)].toSorted()).toEqual(Object.keys(metrics).toSorted());
});
