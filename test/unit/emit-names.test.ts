import { describe, expect, it } from 'vitest';
import { attribute, pinSpanAttributes, spanAttributes } from '../../src/emit/attributes.ts';
import { metrics } from '../../src/emit/names.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';
import { clearedHows, pinEvents } from '../../src/model/pin-life.ts';
import { profiles, reporterKinds } from '../../src/model/reporter.ts';
import { attemptResults, causes, outcomes, pins } from '../../src/model/verdict.ts';
import { sourceKinds } from '../../src/model/view.ts';
import { readDoc, tableOf } from '../support/doc-tables.ts';

const page = readDoc('reference/metrics.md');
const spansPage = readDoc('reference/spans.md');

describe('the names of metrics', () => {
  it('are these in Prometheus, on a scrape as over OTLP', () => {
    expect(Object.fromEntries(Object.values(metrics).map((metric) => [metric.name, prometheusName(metric)]))).toEqual({
      'sidelight.requests': 'sidelight_requests_total',
      'sidelight.request.duration': 'sidelight_request_duration_seconds',
      'sidelight.attempted.requests': 'sidelight_attempted_requests_total',
      'sidelight.retried.requests': 'sidelight_retried_requests_total',
      'sidelight.attempts': 'sidelight_attempts_total',
      'sidelight.masked.latency': 'sidelight_masked_latency_seconds',
      'sidelight.tcp.connections': 'sidelight_tcp_connections_total',
      'sidelight.upstream.connection.age': 'sidelight_upstream_connection_age_seconds',
      'sidelight.pinned.requests': 'sidelight_pinned_requests_total',
      'sidelight.pins': 'sidelight_pins',
      'sidelight.pin.oldest': 'sidelight_pin_oldest_seconds',
      'sidelight.pin.bytes': 'sidelight_pin_bytes_total',
      'sidelight.pin.requests': 'sidelight_pin_requests_total',
      'sidelight.pin.events': 'sidelight_pin_events_total',
      'sidelight.endpoint.listed': 'sidelight_endpoint_listed',
      'sidelight.endpoint.unused': 'sidelight_endpoint_unused',
      'sidelight.discovery.age': 'sidelight_discovery_age_seconds',
      'sidelight.discovery.changes': 'sidelight_discovery_changes_total',
      'sidelight.coverage.reporters': 'sidelight_coverage_reporters',
      'sidelight.coverage.silent': 'sidelight_coverage_silent',
      'sidelight.coverage.expected': 'sidelight_coverage_expected',
      'sidelight.coverage.last_entry.age': 'sidelight_coverage_last_entry_age_seconds',
      'sidelight.self.streams': 'sidelight_self_streams',
      'sidelight.self.messages': 'sidelight_self_messages_total',
      'sidelight.self.decode.errors': 'sidelight_self_decode_errors_total',
      'sidelight.self.refused': 'sidelight_self_refused_total',
      'sidelight.self.tag.duration': 'sidelight_self_tag_duration_seconds',
      'sidelight.self.fail_open': 'sidelight_self_fail_open_total',
      'sidelight.self.join.events': 'sidelight_self_join_events_total',
      'sidelight.self.exchanges.incomplete': 'sidelight_self_exchanges_incomplete_total',
      'sidelight.self.attempt_count.mismatches': 'sidelight_self_attempt_count_mismatches_total',
      'sidelight.self.spans.kept': 'sidelight_self_spans_kept_total',
      'sidelight.self.spans.dropped': 'sidelight_self_spans_dropped_total',
      'sidelight.self.exports': 'sidelight_self_exports_total',
      'sidelight.self.label.overflow': 'sidelight_self_label_overflow_total',
      'sidelight.self.series': 'sidelight_self_series',
      'sidelight.self.event_loop.lag': 'sidelight_self_event_loop_lag_seconds',
    });
  });

  it('follow the translation of Prometheus for units, counters and ratios', () => {
    const name = (text: string, unit: string, kind: 'counter' | 'gauge' | 'histogram'): string =>
      prometheusName({ name: text, unit, kind });
    expect(name('a.share', '1', 'gauge')).toBe('a_share_ratio');
    expect(name('a.share', '1', 'counter')).toBe('a_share_total');
    expect(name('a.total.things', '{thing}', 'counter')).toBe('a_things_total');
    expect(name('a.io.bytes', 'By', 'counter')).toBe('a_io_bytes_total');
    expect(name('a.io', 'By', 'histogram')).toBe('a_io_bytes');
  });

  it('are in the docs with kind, unit, attributes and meaning, and no others are', () => {
    const rows = tableOf(page, ['OpenTelemetry', 'Prometheus', 'kind', 'unit', 'attributes', 'meaning']);
    const expected = Object.values(metrics).map((metric) => [
      `\`${metric.name}\``,
      `\`${prometheusName(metric)}\``,
      metric.kind,
      metric.unit,
      attributesInShort(metric.attributes),
      metric.description,
    ]);
    expect(rows).toEqual(expected);
  });

  it('have buckets if and only if they are histograms', () => {
    for (const metric of Object.values(metrics)) expect('buckets' in metric).toBe(metric.kind === 'histogram');
  });
});

/** As the page writes them: four that come together have one name there. */
function attributesInShort(attributes: readonly string[]): string {
  const names = attributes.map((one) => `\`${one}\``).join(' ');
  const place = [attribute.cluster, attribute.reporterKind, attribute.reporterWorkload, attribute.reporterNamespace];
  return names === '' ? '–' : names.replace(place.map((one) => `\`${one}\``).join(' '), '*place*');
}

describe('the attributes in the docs', () => {
  const values = new Map(tableOf(page, ['attribute', 'values']).map(([name, text]) => [name, text]));

  it.each([
    [attribute.outcome, outcomes],
    [attribute.result, attemptResults],
    [attribute.cause, causes],
    [attribute.pin, pins],
    [attribute.reporterKind, reporterKinds],
    [attribute.profile, profiles],
    [attribute.source, sourceKinds],
    [attribute.event, pinEvents],
    [attribute.how, clearedHows],
  ])('list every value of %s', (name, closed) => {
    const listed = (values.get(`\`${name}\``) ?? '').split(';')[0];
    expect(listed).toBe(closed.map((value) => `\`${value}\``).join(' '));
  });

  it('of spans are those of the code', () => {
    const rows = tableOf(spansPage, ['attribute', 'on', 'meaning']);
    expect(rows).toEqual(Object.entries(spanAttributes).map(([name, { on, says }]) => [`\`${name}\``, on, says]));
  });

  it('that the page on chains explains are those of the code', () => {
    const prefix = 'sidelight.chain.';
    const explained = tableOf(readDoc('chains.md'), ['attribute', 'of the example', 'meaning']).map(([name]) => name);
    const known = Object.keys(spanAttributes).filter((name) => name.startsWith(prefix));
    expect(explained).toEqual(known.map((name) => `\`${name}\``));
  });

  it("of a pin's spans are those of the code", () => {
    const rows = tableOf(spansPage, ['attribute of a pin', 'on', 'meaning']);
    expect(rows).toEqual(
      Object.entries(pinSpanAttributes).map(([name, { on, says }]) => [
        `\`${name}\``,
        on === 'both' ? on : `\`${on}\``,
        says,
      ]),
    );
  });
});

describe('the queries in the docs', () => {
  const known = new Set([
    ...Object.values(metrics).map((metric) => prometheusName(metric)),
    ...Object.values(attribute).map((name) => name.replaceAll(/[^a-z]/g, '_')),
  ]);
  const queries = [...page.matchAll(/```promql (?<title>\S+)\n(?<query>[^`]*)```/g)].map(
    ({ groups }) => [groups?.['title'], groups?.['query'] ?? ''] as const,
  );

  it.each(queries)('%s: has names that are exported, and no others', (_, query) => {
    const names = query.match(/\bsidelight_\w+/g) ?? [];
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });

  const reported = Object.values(metrics)
    .filter(({ attributes }) => (attributes as readonly string[]).includes(attribute.reporterKind))
    .map((metric) => prometheusName(metric));

  it.each(queries)('%s: never adds up what several kinds of proxies saw of one call', (_, query) => {
    const sums = query.split(/(?=\b(?:sum|max|min) by)/).filter((sum) => reported.some((name) => sum.includes(name)));
    for (const sum of sums) expect(sum).toMatch(/\{[^}]*sidelight_reporter_kind="|by \([^)]*sidelight_reporter_kind/);
  });
});
