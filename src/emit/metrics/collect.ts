import { type Metric, metrics } from '../names.ts';
import { ClearedUse } from './cleared-use.ts';
import { coveragePoints, discoveryPoints, type GaugeSources, type Point, pinPoints, unusedPoints } from './gauges.ts';
import { Layout } from './layout.ts';
import type { SelfMetrics } from './self-metrics.ts';
import { Scope, type Series } from './series.ts';
import { seriesKind } from './series-kind.ts';
import type { SeriesTable } from './series-table.ts';

/** One series with the scope whose labels it has. */
export interface Row {
  scope: Scope;
  series: Series;
}

/** All that holds at one moment, by metric. */
export interface Collection {
  rows: Map<Metric, Row[]>;
  atMs: number;
  /** Of sources that threw; what they would have shown is missing. */
  errors: unknown[];
}

export interface CollectOptions {
  table: SeriesTable;
  self: SelfMetrics;
  sources: Partial<GaugeSources>;
  now: () => number;
}

/**
 * Every metric, from the bounded tables and the callbacks. Not from the SDK's instruments: those never forget a series,
 * so that a cleared pin would show for ever. The scrape and OTLP both begin here.
 */
export function createCollector(options: CollectOptions): () => Collection {
  const { table, self, now } = options;
  const startMs = now();
  const clearedUse = new ClearedUse();
  return () => {
    const atMs = now();
    const { points, left, errors } = askSources(options, atMs);
    const rows = new Map<Metric, Row[]>();
    let count = 0;
    for (const scope of table.scopes()) count += addRows(rows, scope);
    count += addRows(rows, self.scope);
    points.push({ metric: metrics.selfSeries, labels: {}, value: count });
    for (const point of points) addPoint(rows, point, startMs);
    if (left !== undefined) clearedUse.drop(table.endpointScopes(), left, atMs);
    return { rows, atMs, errors };
  };
}

function askSources(
  { table, sources: { pins, discovery, coverage, expected, unused, eventLoopLagMs } }: CollectOptions,
  atMs: number,
): { points: Point[]; left: ReadonlySet<Scope> | undefined; errors: unknown[] } {
  const points: Point[] = [];
  const errors: unknown[] = [];
  let left: ReadonlySet<Scope> | undefined;
  const ask = (read: () => Iterable<Point>): void => {
    try {
      for (const point of read()) points.push(point);
    } catch (error) {
      errors.push(error);
    }
  };
  if (pins !== undefined)
    ask(() => {
      const found = pinPoints(pins(), table, atMs);
      left = found.left;
      return found.points;
    });
  if (discovery !== undefined) ask(() => discoveryPoints(discovery(), atMs));
  if (coverage !== undefined) ask(() => coveragePoints(coverage(), atMs));
  if (expected !== undefined)
    ask(() => {
      const value = expected();
      return value === undefined ? [] : [{ metric: metrics.coverageExpected, labels: {}, value }];
    });
  if (unused !== undefined) ask(() => unusedPoints(unused()));
  if (eventLoopLagMs !== undefined)
    ask(() => [{ metric: metrics.selfEventLoopLag, labels: {}, value: eventLoopLagMs() / 1000 }]);
  return { points, left, errors };
}

function addRows(rows: Map<Metric, Row[]>, scope: Scope): number {
  for (const series of scope.series()) addRow(rows, { scope, series });
  return scope.size;
}

/** A point's scope is for its labels alone: it has no numbers of its own. */
const noLayout = new Layout();

function addPoint(rows: Map<Metric, Row[]>, { metric, labels, value }: Point, startMs: number): void {
  const series = { kind: seriesKind(metric), startMs, value };
  addRow(rows, { scope: new Scope(labels, noLayout), series });
}

function addRow(rows: Map<Metric, Row[]>, row: Row): void {
  const { metric } = row.series.kind;
  const list = rows.get(metric);
  if (list === undefined) rows.set(metric, [row]);
  else list.push(row);
}
