import { type HrTime, ValueType } from '@opentelemetry/api';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import { type Metric, metrics } from '../names.ts';
import { toHrTime } from '../time.ts';
import { coveragePoints, discoveryPoints, type GaugeSources, type Point, pinPoints } from './gauges.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { HistogramSeries, NumberSeries, Scope, Series } from './series.ts';
import type { SeriesTable } from './series-table.ts';

export interface ProducerOptions {
  table: SeriesTable;
  self: SelfMetrics;
  sources: Partial<GaugeSources>;
  now: () => number;
  /** Instrumentation scope's version. */
  version: string;
}

/**
 * Every metric, from the bounded tables and the callbacks. Not from instruments: those never forget a series, so that
 * a cleared pin would show for ever. One producer serves the scrape and OTLP alike.
 */
export function createProducer({ table, self, sources, now, version }: ProducerOptions): MetricProducer {
  const start = toHrTime(now());

  function collect(): CollectionResult {
    const nowMs = now();
    const errors: unknown[] = [];
    const points: Point[] = [];
    const ask = (read: () => Iterable<Point>): void => {
      try {
        for (const point of read()) points.push(point);
      } catch (error) {
        errors.push(error);
      }
    };
    let left: Set<Scope> | undefined;
    const { pins, discovery, coverage, eventLoopLagMs } = sources;
    if (pins !== undefined)
      ask(() => {
        const found = pinPoints(pins(), table, nowMs);
        left = found.left;
        return found.points;
      });
    if (discovery !== undefined) ask(() => discoveryPoints(discovery(), nowMs));
    if (coverage !== undefined) ask(() => coveragePoints(coverage(), nowMs));
    if (eventLoopLagMs !== undefined)
      ask(() => [{ metric: metrics.selfEventLoopLag, labels: {}, value: eventLoopLagMs() / 1000 }]);

    const series = new SeriesByMetric(toHrTime(nowMs));
    for (const scope of table.scopes()) series.addAll(scope);
    series.addAll(self.scope);
    points.push({ metric: metrics.selfSeries, labels: {}, value: series.count });
    for (const point of points) series.addPoint(point, start);
    if (left !== undefined) dropClearedBytes(table, left);
    return {
      resourceMetrics: {
        resource: emptyResource(),
        scopeMetrics: [{ scope: { name: 'sidelight', version }, metrics: series.metricData() }],
      },
      errors,
    };
  }

  return { collect: () => Promise.resolve(collect()) };
}

/** The bytes of an endpoint that nothing is connected to any more were told one last time: now they go. */
function dropClearedBytes(table: SeriesTable, left: ReadonlySet<Scope>): void {
  for (const scope of table.endpointScopes()) {
    if (scope.has(metrics.pinBytes) && !left.has(scope)) scope.drop(metrics.pinBytes);
  }
}

class SeriesByMetric {
  readonly #end: HrTime;
  readonly #numbers = new Map<Metric, DataPoint<number>[]>();
  readonly #histograms = new Map<Metric, DataPoint<Histogram>[]>();
  count = 0;

  constructor(end: HrTime) {
    this.#end = end;
  }

  addAll(scope: Scope): void {
    for (const series of scope.series()) {
      this.count += 1;
      this.#add(series);
    }
  }

  addPoint({ metric, labels, value }: Point, start: HrTime): void {
    pushTo(this.#numbers, metric, { attributes: labels, startTime: start, endTime: this.#end, value });
  }

  metricData(): MetricData[] {
    return [
      ...[...this.#numbers].map(([metric, points]) => numberData(metric, points)),
      ...[...this.#histograms].map(([metric, points]) => histogramData(metric, points)),
    ];
  }

  #add(series: Series): void {
    const common = { attributes: series.labels, startTime: series.start, endTime: this.#end };
    if (isHistogram(series)) pushTo(this.#histograms, series.metric, { ...common, value: histogramOf(series) });
    else pushTo(this.#numbers, series.metric, { ...common, value: series.value });
  }
}

function isHistogram(series: Series): series is HistogramSeries {
  return (series as Partial<NumberSeries>).value === undefined;
}

function histogramOf({ metric, counts, sum, count }: HistogramSeries): Histogram {
  return { buckets: { boundaries: [...(metric.buckets ?? [])], counts: [...counts] }, sum, count };
}

function pushTo<T>(lists: Map<Metric, T[]>, metric: Metric, point: T): void {
  const list = lists.get(metric);
  if (list === undefined) lists.set(metric, [point]);
  else list.push(point);
}

function descriptorOf({ name, description, unit }: Metric): MetricData['descriptor'] {
  return { name, description, unit, valueType: unit === 's' ? ValueType.DOUBLE : ValueType.INT };
}

function numberData(metric: Metric, dataPoints: DataPoint<number>[]): MetricData {
  const common = {
    descriptor: descriptorOf(metric),
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPoints,
  };
  return metric.kind === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true }
    : { ...common, dataPointType: DataPointType.GAUGE };
}

function histogramData(metric: Metric, dataPoints: DataPoint<Histogram>[]): MetricData {
  return {
    descriptor: descriptorOf(metric),
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType: DataPointType.HISTOGRAM,
    dataPoints,
  };
}
