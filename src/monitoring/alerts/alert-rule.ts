import type { ParameterName } from '../parameters.ts';
import type { Terms } from '../terms.ts';

/** `page`: somebody is woken. `ticket`: somebody looks at it in working hours. */
export type Severity = 'page' | 'ticket';

/** A search in Jaeger for the traces of an alert whose labels have a reporter. */
export interface TraceSearch {
  /** The span's name; absent: any. */
  operation?: string;
  /** What the alert's labels say of the span: the attributes of the same names. */
  fromLabels: readonly string[];
  /** Further attributes. */
  tags?: Readonly<Record<string, string>>;
}

export interface AlertRule {
  name: `Sidelight${string}`;
  severity: Severity;
  /** What it means, for the table of alerts. */
  meaning: string;
  /** The thresholds that it looks at, the first one foremost. */
  parameters: readonly ParameterName[];
  expr: (terms: Terms) => string;
  /** How long it must hold, seconds. */
  forSeconds: (terms: Terms) => number;
  /** How long it goes on after it held last, seconds, so that sparse traffic does not make it flap; absent: not. */
  keepSeconds?: number;
  /** One line, with Prometheus' templates. */
  summary: string;
  /** What is the case, with the numbers. */
  description: string;
  /** Absent: there is no trace of it. */
  traces?: TraceSearch;
}
