import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { describe, expect, it } from 'vitest';
import { createCollector } from '../../src/emit/metrics/collect.ts';
import { DomainMetrics, startAtZero } from '../../src/emit/metrics/domain-metrics.ts';
import { createProducer } from '../../src/emit/metrics/producer.ts';
import { scrapeOf } from '../../src/emit/metrics/scrape.ts';
import { SelfMetrics } from '../../src/emit/metrics/self-metrics.ts';
import { SeriesTable } from '../../src/emit/metrics/series-table.ts';
import { type Metric, metrics } from '../../src/emit/names.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';
import { judged, masked, tcpConnection } from '../support/judged.ts';

const now = (): number => 1_700_000_000_000;

describe('the text of a scrape', () => {
  it("is what the SDK's serializer makes of the points that go over OTLP, under Prometheus' names", async () => {
    const table = new SeriesTable(
      { reporters: 10, clusters: 10, endpoints: 10, idleMs: 1000 },
      { onOverflow: () => undefined, onNewCluster: (scope, nowMs) => startAtZero(scope, nowMs, () => false) },
    );
    const self = new SelfMetrics(now);
    self.tagDuration(0.1);
    const domain = new DomainMetrics(table, () => false);
    domain.exchange(judged({ exchange: { cluster: 'a "quoted"\\name\nhere' } }), now());
    domain.exchange(masked(), now());
    domain.tcpEnd(tcpConnection(), { result: 'failed', cause: 'reset' }, now());
    const collect = createCollector({ table, self, sources: { eventLoopLagMs: () => 1.5 }, now });
    const resource = { 'service.name': 'sidelight', '9lives': 'x', 'a.b': '1', a_b: '2' };

    const text = [...scrapeOf(collect(), resource).body].join('');

    const { resourceMetrics } = await createProducer(collect, '0.1.0').collect();
    const named = resourceMetrics.scopeMetrics.map(({ scope, metrics: list }) => ({
      scope,
      metrics: list.map((data) => ({
        ...data,
        descriptor: { ...data.descriptor, name: prometheusName(byName(data.descriptor.name)), unit: '' },
      })),
    }));
    const ours: unknown = { resource: resourceFromAttributes(resource), scopeMetrics: named };
    const theirs = new PrometheusSerializer(undefined, false, undefined, false, true).serialize(
      ours as Parameters<PrometheusSerializer['serialize']>[0],
    );
    const [, targetInfo = '', ...rest] = text.split(/(?<=^target_info\{.*\n)|(?=^target_info\{)/m);
    expect(rest.join('')).toBe(theirs.replace(/^(?:# .* target_info .*\n|target_info.*\n)+/m, ''));
    // Theirs would be refused: the same label twice, and one that begins with a digit.
    expect(targetInfo).toBe('target_info{service_name="sidelight",key_9lives="x",a_b="1"} 1\n');
  });
});

function byName(name: string): Metric {
  const found = Object.values(metrics).find((metric) => metric.name === name);
  if (found === undefined) throw new Error(`no metric ${name}`);
  return found;
}
