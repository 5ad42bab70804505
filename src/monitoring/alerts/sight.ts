import { attribute as a } from '../../emit/attributes.ts';
import type { SpanDrop } from '../../emit/metrics/self-metrics.ts';
import type { JoinEvent } from '../../model/join-event.ts';
import { is, isNot, labels, series } from '../promql.ts';
import type { AlertRule } from './alert-rule.ts';

const minute = 60;
const hour = 60 * minute;

/** What counts as going on: longer than the window, so that a single event is no alarm. */
const goesOn = 15 * minute;
const window = 10 * minute;
const perSecond = '{{ $value | humanize }} per second';

const lost: SpanDrop[] = ['queue_full', 'export_failed'];
const notJoined: JoinEvent[] = ['keyless', 'refused', 'evicted'];

/** Whether the other alerts can be trusted: who is seen, and what is lost. */
export const sightAlerts: readonly AlertRule[] = [
  {
    name: 'SidelightBlind',
    severity: 'page',
    meaning: 'No Sidelight tells anything, or none hears of any proxy: the other alerts cannot fire.',
    parameters: [],
    expr: ({ span }) =>
      [
        `  absent(${series('selfSeries')})`,
        'or',
        `  (sidelight:reporters:sum == 0 and max_over_time(sidelight:reporters:sum[${span(24 * hour)}]) > 0)`,
      ].join('\n'),
    forSeconds: () => 5 * minute,
    summary: 'Sidelight is blind',
    description:
      '{{ if eq $value 0.0 }}No proxy reports, though some did within the last day.{{ else }}No replica answers a scrape or sends metrics.{{ end }} Nothing is known of retries and pins until that is mended.',
  },
  {
    name: 'SidelightReplicaDown',
    severity: 'ticket',
    meaning: 'Prometheus cannot scrape a replica. Says nothing where metrics come over OTLP.',
    parameters: [],
    expr: ({ job }) => `up{job=~"${job}"} == 0`,
    forSeconds: () => 5 * minute,
    summary: 'Sidelight at {{ $labels.instance }} cannot be scraped',
    description: 'up is {{ $value }}. What its proxies tell is not seen; they go on, and their requests do.',
  },
  {
    name: 'SidelightDiscoveryBlind',
    severity: 'ticket',
    meaning: 'A source of endpoints gives no answer: pins of the cluster become unknown.',
    parameters: ['discoveryAge'],
    expr: ({ thresholds, seconds }) => `sidelight:discovery_age_seconds:max > ${seconds(thresholds.discoveryAge)}`,
    forSeconds: () => 5 * minute,
    summary: 'The endpoints of {{ $labels.sidelight_cluster }} are not known ({{ $labels.sidelight_source }})',
    description:
      'The last good answer is {{ $value | humanizeDuration }} old (+Inf: there was none). A stale pin of this cluster would not be seen.',
  },
  {
    name: 'SidelightCoverageLost',
    severity: 'ticket',
    meaning: 'Proxies that reported, or should, do not.',
    parameters: ['coverageLost'],
    expr({ thresholds, span }) {
      const before = `(sidelight:reporters:sum offset ${span(hour)})`;
      return [
        `  (${before} - sidelight:reporters:sum > ${thresholds.coverageLost} * ${before})`,
        'or',
        '  (sidelight:reporters_expected:max - sidelight:reporters:sum > 0)',
      ].join('\n');
    },
    forSeconds: () => goesOn,
    summary: 'Proxies do not report',
    description:
      'Of the proxies that reported an hour ago, or should report, {{ $value }} do not. What they do is not in any rate.',
  },
  {
    name: 'SidelightExchangesIncomplete',
    severity: 'ticket',
    meaning: 'Exchanges lack facts, and are `unknown`.',
    parameters: ['incomplete'],
    // Profile tag never knows the outcome: that is no loss. Both sides count what each proxy saw, so kinds are not told apart.
    expr: ({ thresholds, span }) =>
      [
        `  sum ${labels('by', [a.reason])} (rate(${series('selfIncomplete', { [a.reason]: isNot('profile_tag') })}[${span(window)}]))`,
        '/ on () group_left ()',
        `  sum(rate(${series('requests')}[${span(window)}]))`,
        `> ${thresholds.incomplete}`,
      ].join('\n'),
    forSeconds: () => goesOn,
    summary: 'Sidelight does not see exchanges whole ({{ $labels.sidelight_reason }})',
    description: '{{ $value | humanizePercentage }} of all exchanges are unknown, and left out of every rate.',
  },
  {
    name: 'SidelightEntriesNotJoined',
    severity: 'ticket',
    meaning: 'Log entries belong to no exchange, or push others out.',
    parameters: [],
    expr: ({ span }) =>
      `sum ${labels('by', [a.event])} (rate(${series('selfJoinEvents', { [a.event]: is(...notJoined) })}[${span(window)}])) > 0`,
    forSeconds: () => goesOn,
    summary: 'Log entries do not join ({{ $labels.sidelight_event }})',
    description: `${perSecond}. What they tell is lost.`,
  },
  {
    name: 'SidelightInputRefused',
    severity: 'ticket',
    meaning: 'A bound is reached, and input is refused or cut.',
    parameters: [],
    expr: ({ span }) => `sum ${labels('by', [a.limit])} (rate(${series('selfRefused')}[${span(window)}])) > 0`,
    forSeconds: () => goesOn,
    summary: 'Sidelight refuses input ({{ $labels.sidelight_limit }})',
    description: `${perSecond} refused, cut or pushed out. Requests are not touched, but what is told of them is not whole.`,
  },
  {
    name: 'SidelightDecodeErrors',
    severity: 'ticket',
    meaning: 'Messages cannot be decoded.',
    parameters: [],
    expr: ({ span }) => `sum ${labels('by', [a.stream])} (rate(${series('selfDecodeErrors')}[${span(window)}])) > 0`,
    forSeconds: () => goesOn,
    summary: 'Sidelight cannot read messages ({{ $labels.sidelight_stream }})',
    description: `${perSecond}. Each cost its own stream.`,
  },
  {
    name: 'SidelightExportFailing',
    severity: 'ticket',
    meaning: 'Spans or metrics do not arrive.',
    parameters: [],
    expr: ({ span }) =>
      [
        `  sum ${labels('by', [a.signal])} (rate(${series('selfExports', { [a.result]: is('failed') })}[${span(window)}])) > 0`,
        'or',
        `  sum ${labels('by', [a.reason])} (rate(${series('selfSpansDropped', { [a.reason]: is(...lost) })}[${span(window)}])) > 0`,
      ].join('\n'),
    forSeconds: () => goesOn,
    summary: 'Sidelight loses what it exports ({{ or $labels.sidelight_signal $labels.sidelight_reason }})',
    description: `${perSecond} failed exports, or lost spans. A trace that an alert links to may not be there.`,
  },
  {
    name: 'SidelightLabelOverflow',
    severity: 'ticket',
    meaning: 'A table of labels is full, and the rest is `other`.',
    parameters: [],
    expr: ({ span }) => `sum ${labels('by', [a.label])} (rate(${series('selfLabelOverflow')}[${span(window)}])) > 0`,
    forSeconds: () => goesOn,
    summary: 'Sidelight has no room for each {{ $labels.sidelight_label }}',
    description: `${perSecond} observations have the label "other": whose they are is not to be seen.`,
  },
];
