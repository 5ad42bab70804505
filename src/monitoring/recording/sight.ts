import { attribute as a } from '../../emit/attributes.ts';
import { labels, series } from '../promql.ts';
import type { RecordingRule } from './recording-rule.ts';

/** What is seen, and by whom. */
export const sight: RecordingRule[] = [
  {
    record: 'sidelight:discovery_age_seconds:max',
    meaning: 'since the last good answer of a source, at the replica that waits longest; +Inf: a replica had none',
    // The first has the labels of the second, those of the target included.
    expr: () =>
      [
        `  max ${labels('by', [a.cluster, a.source])} ((${series('endpointListed')} unless ${series('discoveryAge')}) * 0 + Inf)`,
        'or',
        `  max ${labels('by', [a.cluster, a.source])} (${series('discoveryAge')})`,
      ].join('\n'),
  },
  {
    record: 'sidelight:reporters:sum',
    meaning: 'proxies that report; one that reports to two replicas counts twice',
    expr: () => `sum(${series('coverageReporters')})`,
  },
  {
    record: 'sidelight:reporters_expected:max',
    meaning: 'proxies that should',
    expr: () => `max(${series('coverageExpected')})`,
  },
];
