import { setImmediate } from 'node:timers/promises';
import { type HrTime, ValueType } from '@opentelemetry/api';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { Metric } from '../names.ts';
import { toHrTime } from '../time.ts';
import type { Collection, Row } from './collect.ts';
import type { HistogramSeries, NumberSeries } from './series.ts';

/** Points made at a stretch: a big table must not keep a proxy waiting for its tags. */
const stretch = 2000;

/** What the scrape shows, for a reader of the SDK. `version`: of the instrumentation scope. */
export function createProducer(collect: () => Collection, version: string): MetricProducer {
  return {
    async collect() {
      const { rows, atMs, errors } = collect();
      const end = toHrTime(atMs);
      const metrics: MetricData[] = [];
      for (const [metric, list] of rows) metrics.push(await metricData(metric, list, end));
      const scopeMetrics = [{ scope: { name: 'sidelight', version }, metrics }];
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors };
    },
  };
}

async function metricData(metric: Metric, rows: readonly Row[], end: HrTime): Promise<MetricData> {
  const { name, description, unit, kind } = metric;
  const valueType = unit === 's' ? ValueType.DOUBLE : ValueType.INT;
  const common = {
    descriptor: { name, description, unit, valueType },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (kind === 'histogram') {
    const dataPoints = await pointsOf<Histogram>(rows, end, (series) => histogramOf(series as HistogramSeries));
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = await pointsOf<number>(rows, end, (series) => (series as NumberSeries).value);
  return kind === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
}

async function pointsOf<T>(
  rows: readonly Row[],
  endTime: HrTime,
  valueOf: (series: Row['series']) => T,
): Promise<DataPoint<T>[]> {
  const points: DataPoint<T>[] = [];
  for (const { scope, series } of rows) {
    const attributes = { ...scope.labels, ...series.kind.own };
    points.push({ attributes, startTime: toHrTime(series.startMs), endTime, value: valueOf(series) });
    if (points.length % stretch === 0) await setImmediate();
  }
  return points;
}

function histogramOf({ kind, counts, sum, count }: HistogramSeries): Histogram {
  return { buckets: { boundaries: [...(kind.metric.buckets ?? [])], counts: [...counts] }, sum, count };
}
