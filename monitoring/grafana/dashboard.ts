import { VizLegendOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import {
  DashboardBuilder,
  DashboardLinkBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  TextBoxVariableBuilder,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { attribute as a, type MetricAttribute } from '../../src/emit/attributes.ts';
import { metrics } from '../../src/emit/names.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';
import { endpointsRow } from './endpoints.ts';
import type { Panel, Row } from './panel.ts';
import { label } from './promql.ts';
import { sightRow } from './sight.ts';
import { successRow } from './success.ts';

export const rows: readonly Row[] = [successRow, endpointsRow, sightRow];

const prometheus = { type: 'prometheus', uid: '${datasource}' };
const panelWidth = 8;
const panelHeight = 8;

/** The dashboard, as Grafana imports it. */
export function dashboardJson(): string {
  // oxlint-disable-next-line typescript/no-deprecated -- its successor writes a schema that only the newest Grafana takes.
  const board = new DashboardBuilder('Sidelight')
    .uid('sidelight')
    .description('What retries hide, who is still on an old endpoint, and what Sidelight sees.')
    .tags(['sidelight', 'envoy'])
    .timezone('browser')
    .time({ from: 'now-1h', to: 'now' })
    .refresh('30s')
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
    .withVariable(oneOf('kind', 'Seen by', a.reporterKind))
    .withVariable(anyOf('cluster', 'Cluster', a.cluster))
    .withVariable(anyOf('workload', 'Workload of the proxy', a.reporterWorkload))
    .withVariable(new TextBoxVariableBuilder('jaeger').label('Jaeger').defaultValue('http://localhost:16686'));
  let id = 0;
  for (const row of rows) {
    board.withRow(new RowBuilder(row.title).id((id += 1)));
    for (const panel of row.panels) board.withPanel(timeSeries(panel).id((id += 1)));
  }
  return `${JSON.stringify(board.build(), undefined, 2)}\n`;
}

/** One call may be seen by proxies of three kinds: so one kind is always chosen. */
function oneOf(name: string, title: string, attribute: MetricAttribute): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(title)
    .datasource(prometheus)
    .query(`label_values(${prometheusName(metrics.requests)}, ${label(attribute)})`)
    .refresh(VariableRefresh.OnTimeRangeChanged);
}

function anyOf(name: string, title: string, attribute: MetricAttribute): QueryVariableBuilder {
  const all = { text: 'All', value: '$__all' };
  return oneOf(name, title, attribute).multi(true).includeAll(true).allValue('.*').current(all);
}

function timeSeries({ title, says, unit, targets, traces }: Panel): PanelBuilder {
  const panel = new PanelBuilder()
    .title(title)
    .description(says)
    .datasource(prometheus)
    .unit(unit)
    .min(0)
    .span(panelWidth)
    .height(panelHeight)
    .legend(new VizLegendOptionsBuilder().showLegend(true));
  targets.forEach(({ expr, legend }, index) => {
    const refId = String.fromCharCode('A'.charCodeAt(0) + index);
    panel.withTarget(
      new DataqueryBuilder().datasource(prometheus).expr(expr).legendFormat(legend).refId(refId).range(),
    );
  });
  if (traces !== undefined) panel.dataLinks([searchLink(traces)]);
  return panel;
}

/** To Jaeger's search page, for the cluster and the workload of the series that was clicked. */
function searchLink(traces: Readonly<Record<string, string>>): DashboardLinkBuilder {
  const field = (name: MetricAttribute) => `\${__field.labels.${label(name)}:percentencode}`;
  const known = Object.entries(traces).map(([key, value]) => `"${key}":"${value}"`);
  const tags = encodeURIComponent(`{${known.join(',')},"${a.cluster}":"`);
  const url = `\${jaeger}/search?service=${field(a.reporterWorkload)}&tags=${tags}${field(a.cluster)}${encodeURIComponent('"}')}`;
  return new DashboardLinkBuilder('Traces in Jaeger').url(url).targetBlank(true);
}
