import { attribute as a } from '../../emit/attributes.ts';
import type { Outcome } from '../../model/verdict.ts';
import type { Terms } from '../terms.ts';
import type { AlertRule, TraceSearch } from './alert-rule.ts';

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

const where =
  '{{ or $labels.sidelight_cluster "no cluster" }} (as {{ $labels.sidelight_reporter_kind }} of {{ or $labels.sidelight_reporter_workload "an unnamed workload" }} sees it)';
const share = '{{ $value | humanizePercentage }}';

/** Enough requests in the 5 minutes that an alert looks at. */
const enough = ({ thresholds, seconds }: Terms, of = 'judged') =>
  `and\n  sidelight:${of}:rate5m * ${seconds(5 * minute)} >= ${thresholds.requests}`;

const ofOutcome = (outcome: Outcome): TraceSearch => ({ fromLabels: [a.cluster], tags: { [a.outcome]: outcome } });

/** What retries hide, and what they cost. */
export const retryAlerts: readonly AlertRule[] = [
  {
    name: 'SidelightMaskedFailuresFast',
    severity: 'page',
    meaning: 'Retries hide so many failures that the budget for them will be gone in two days.',
    parameters: ['maskedFastBurn', 'maskedBudget', 'maskedFastRequests'],
    expr: ({ thresholds, seconds }) =>
      [
        `  sidelight:masked:ratio1h > ${thresholds.maskedFastBurn} * ${thresholds.maskedBudget}`,
        `and\n  sidelight:masked:ratio5m > ${thresholds.maskedFastBurn} * ${thresholds.maskedBudget}`,
        `and\n  sidelight:judged:rate1h * ${seconds(hour)} >= ${thresholds.maskedFastRequests}`,
      ].join('\n'),
    forSeconds: () => 2 * minute,
    keepSeconds: 5 * minute,
    summary: `Retries hide failures of ${where}`,
    description: `${share} of the requests of the last hour succeeded only because Envoy tried again. Clients see nothing of it yet.`,
    traces: ofOutcome('masked'),
  },
  {
    name: 'SidelightMaskedFailuresSlow',
    severity: 'ticket',
    meaning: 'Retries hide failures all day.',
    parameters: ['maskedSlowBurn', 'maskedBudget', 'maskedSlowRequests'],
    expr: ({ thresholds, seconds }) =>
      [
        `  sidelight:masked:ratio1d > ${thresholds.maskedSlowBurn} * ${thresholds.maskedBudget}`,
        `and\n  sidelight:masked:ratio2h > ${thresholds.maskedSlowBurn} * ${thresholds.maskedBudget}`,
        `and\n  sidelight:judged:rate1d * ${seconds(day)} >= ${thresholds.maskedSlowRequests}`,
      ].join('\n'),
    forSeconds: () => 15 * minute,
    keepSeconds: 30 * minute,
    summary: `Retries hide failures of ${where} all day`,
    description: `${share} of the requests of the last day succeeded only because Envoy tried again.`,
    traces: ofOutcome('masked'),
  },
  {
    name: 'SidelightFirstTryFarBelowEffective',
    severity: 'page',
    meaning: 'A large part of all requests succeeds only at a second try, now.',
    parameters: ['firstTryGap', 'requests'],
    expr: (terms) =>
      `  sidelight:effective:ratio5m - sidelight:first_try:ratio5m > ${terms.thresholds.firstTryGap}\n${enough(terms)}`,
    forSeconds: () => 5 * minute,
    keepSeconds: 5 * minute,
    summary: `Retries carry ${where}`,
    description: `First-try success is ${share} (of all requests) below what clients see. If retries stop, so many requests fail.`,
    traces: ofOutcome('masked'),
  },
  {
    name: 'SidelightRetriesExhausted',
    severity: 'page',
    meaning: 'Requests fail although Envoy tried them again.',
    parameters: ['exhausted', 'requests'],
    expr: (terms) => `  sidelight:exhausted:ratio5m > ${terms.thresholds.exhausted}\n${enough(terms)}`,
    forSeconds: () => 5 * minute,
    keepSeconds: 5 * minute,
    summary: `Retries do not help ${where}`,
    description: `${share} of the requests failed after all their tries. Clients see it, and the tries add load.`,
    traces: ofOutcome('exhausted'),
  },
  {
    name: 'SidelightCallersAbortFirst',
    severity: 'page',
    meaning: 'Callers give up before there is an answer: that is in no success rate.',
    parameters: ['aborted', 'requests'],
    expr: (terms) => `  sidelight:aborted:ratio5m > ${terms.thresholds.aborted}\n${enough(terms, 'requests')}`,
    forSeconds: () => 10 * minute,
    keepSeconds: 5 * minute,
    summary: `Callers of ${where} give up first`,
    description: `${share} of the requests were aborted by their caller. Success rates leave them out: they may look well.`,
    traces: ofOutcome('aborted'),
  },
  {
    name: 'SidelightAmplification',
    severity: 'ticket',
    meaning: 'Retries multiply the load.',
    parameters: ['amplification', 'requests'],
    expr: (terms) =>
      `  sidelight:amplification:ratio5m > ${terms.thresholds.amplification}\n${enough(terms, 'attempted')}`,
    forSeconds: () => 15 * minute,
    keepSeconds: 5 * minute,
    summary: `Retries multiply the load of ${where}`,
    description:
      'Each request costs {{ $value | humanize }} attempts. Layers multiply: each that retries does so on top.',
    traces: { fromLabels: [a.cluster], tags: { 'sidelight.retried': 'true' } },
  },
];
