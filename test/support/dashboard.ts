import { readFileSync } from 'node:fs';

interface GrafanaPanel {
  title: string;
  type: string;
  targets?: { expr: string; legendFormat: string }[];
}

/** One query of a panel, as the shipped file has it. */
export interface PanelQuery {
  panel: string;
  legend: string;
  expr: string;
}

/** Every query of the dashboard that is shipped, in the order of the panels. */
export function dashboardQueries(): PanelQuery[] {
  const file = new URL('../../monitoring/grafana/sidelight.json', import.meta.url);
  const { panels } = JSON.parse(readFileSync(file, 'utf8')) as { panels: GrafanaPanel[] };
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ panel: title, legend: legendFormat, expr })),
  );
}

/** A query with what Grafana puts in place of the variables, when everything of one reporter kind is chosen. */
export function withVariables(expr: string, kind: string, rateInterval: string): string {
  const chosen: Record<string, string> = {
    $__rate_interval: rateInterval,
    $cluster: '.*',
    $workload: '.*',
    $kind: kind,
  };
  return expr.replaceAll(/\$\w+/g, (name) => {
    const value = chosen[name];
    if (value === undefined) throw new Error(`the dashboard has no variable ${name}`);
    return value;
  });
}
