import type { MetricAttribute } from '../../src/emit/attributes.ts';
import { label } from './promql.ts';

export interface Target {
  expr: string;
  /** Of each series, in Grafana's writing. */
  legend: string;
}

/** A panel of time series. */
export interface Panel {
  title: string;
  /** What it says, and what a value means that worries. */
  says: string;
  /** Grafana's word for it. `percentunit`: 0 to 1; `short`: a plain number. */
  unit: 'percentunit' | 'short' | 's' | 'Bps' | 'reqps';
  targets: readonly Target[];
  /** Tags of the search in Jaeger that a point leads to, besides the cluster; absent: to none. */
  traces?: Readonly<Record<string, string>>;
}

export interface Row {
  title: string;
  panels: readonly Panel[];
}

/** `{{sidelight_cluster}} {{sidelight_endpoint}}`. */
export function legendOf(...names: readonly MetricAttribute[]): string {
  return names.map((name) => `{{${label(name)}}}`).join(' ');
}
