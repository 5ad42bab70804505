import { attribute } from '../emit/attributes.ts';
import type { AlertRule, TraceSearch } from './alerts/alert-rule.ts';
import { label } from './promql.ts';

export interface Links {
  /** What stands before `NAME.md`, without a slash at its end. */
  runbooks: string;
  /** Jaeger's page, without a slash at its end; empty: the search is given as the path below it. */
  jaeger: string;
}

/** An alert's annotations, in Prometheus' names. */
export function annotations({ name, summary, description, traces }: AlertRule, links: Links): Record<string, string> {
  return {
    summary,
    description,
    runbook_url: `${links.runbooks}/${name}.md`,
    ...(traces === undefined ? {} : { traces_url: `${links.jaeger}${search(traces)}` }),
  };
}

const template = (name: string) => `{{ urlquery $labels.${label(name)} }}`;

/** The service is the workload of the reporter, or what its spans have where it has no name. */
function search({ operation, fromLabels, tags = {} }: TraceSearch): string {
  const workload = `$labels.${label(attribute.reporterWorkload)}`;
  const service = `{{ if ${workload} }}{{ urlquery ${workload} }}{{ else }}unknown_service%3Aenvoy{{ end }}`;
  const known = [
    ...fromLabels.map((name) => [name, template(name)] as const),
    ...Object.entries(tags).map(([name, value]) => [name, encodeURIComponent(value)] as const),
  ];
  const [open, close, quote, colon, comma] = ['{', '}', '"', ':', ','].map(encodeURIComponent);
  const pairs = known.map(([name, value]) => `${quote}${name}${quote}${colon}${quote}${value}${quote}`);
  const named = operation === undefined ? '' : `&operation=${encodeURIComponent(operation)}`;
  return `/search?service=${service}${named}&tags=${open}${pairs.join(comma)}${close}`;
}
