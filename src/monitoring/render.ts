import { Document } from 'yaml';
import type { RuleGroup, Rules } from './build.ts';

/** What can be written: the two files of Prometheus, or all as an object of the Prometheus Operator. */
export const forms = ['recording', 'alerts', 'operator'] as const;
export type Form = (typeof forms)[number];

const remarks: Readonly<Record<Form, string>> = {
  recording: ` Recording rules of Sidelight, written by \`sidelight rules recording\`; docs/alerts.md.
 Rates are per reporter kind: one call may be seen by proxies of three kinds, so choose one and never sum over them.`,
  alerts: ` Alerts of Sidelight, written by \`sidelight rules alerts\`; docs/alerts.md. They need the recording rules.
 Other thresholds, runbooks or a Jaeger: write it anew, with --set, --runbooks and --jaeger.`,
  operator: ` For the Prometheus Operator, written by \`sidelight rules operator\`; docs/alerts.md.
 Your Prometheus must select it: many want a label, such as \`release: NAME\`, on every rule.`,
};

/** The rules as YAML, with a remark in front. */
export function renderRules({ recording, alerts }: Rules, form: Form): string {
  const contents: Record<Form, object> = {
    recording: { groups: recording },
    alerts: { groups: alerts },
    operator: prometheusRule([...recording, ...alerts]),
  };
  // Without anchors: a text that comes twice is written twice.
  const document = new Document(contents[form], { aliasDuplicateObjects: false });
  document.commentBefore = remarks[form];
  return document.toString({ lineWidth: 0 });
}

function prometheusRule(groups: readonly RuleGroup[]): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'sidelight', namespace: 'sidelight' },
    spec: { groups },
  };
}
