import type { AlertRule } from './alerts/alert-rule.ts';
import { endpointAlerts } from './alerts/endpoints.ts';
import { retryAlerts } from './alerts/retries.ts';
import { sightAlerts } from './alerts/sight.ts';
import { annotations, type Links } from './annotations.ts';
import { type Thresholds, thresholds } from './parameters.ts';
import { recordingGroups } from './recording.ts';
import { createTerms, type Terms } from './terms.ts';

export interface RulesOptions {
  /** Those that are not the defaults. */
  thresholds?: Partial<Thresholds>;
  links?: Partial<Links>;
  /** Matches the label `job` of Sidelight's targets, as a whole. */
  job?: string;
  /** By how much every time is longer than said: 1/60 makes an hour a minute, for demonstrations and tests. */
  timeScale?: number;
}

/** A rule as Prometheus writes it. */
export interface PrometheusRule {
  record?: string;
  alert?: string;
  expr: string;
  for?: string;
  keep_firing_for?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export interface RuleGroup {
  name: string;
  interval?: string;
  rules: PrometheusRule[];
}

export interface Rules {
  recording: RuleGroup[];
  alerts: RuleGroup[];
}

/** The defaults of what is no threshold. */
export const defaults = { runbooks: 'docs/runbooks', jaeger: '', job: '.*sidelight.*' } as const;

/** The groups of alerts, by name. */
export const alertGroups: Readonly<Record<string, readonly AlertRule[]>> = {
  'sidelight-alerts-retries': retryAlerts,
  'sidelight-alerts-endpoints': endpointAlerts,
  'sidelight-alerts-sight': sightAlerts,
};

/** All rules, for these thresholds and places. */
export function buildRules(options: RulesOptions = {}): Rules {
  const { job = defaults.job, timeScale = 1 } = options;
  const terms = createTerms({ thresholds: thresholds(options.thresholds), timeScale, job });
  const links = { runbooks: defaults.runbooks, jaeger: defaults.jaeger, ...options.links };
  return {
    recording: recordingGroups.map(({ name, everySeconds, rules }) => ({
      name,
      ...(everySeconds === undefined ? {} : { interval: terms.span(everySeconds) }),
      rules: rules.map(({ record, expr }) => ({ record, expr: expr(terms) })),
    })),
    alerts: Object.entries(alertGroups).map(([name, rules]) => ({
      name,
      rules: rules.map((rule) => written(rule, terms, links)),
    })),
  };
}

function written(rule: AlertRule, terms: Terms, links: Links): PrometheusRule {
  return {
    alert: rule.name,
    expr: rule.expr(terms),
    for: terms.span(rule.forSeconds(terms)),
    ...(rule.keepSeconds === undefined ? {} : { keep_firing_for: terms.span(rule.keepSeconds) }),
    labels: { severity: rule.severity },
    annotations: annotations(rule, links),
  };
}
