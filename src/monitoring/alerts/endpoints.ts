import { attribute as a } from '../../emit/attributes.ts';
import { endpointPlace, is, labels, place, recorded, series } from '../promql.ts';
import type { AlertRule } from './alert-rule.ts';

const minute = 60;

/**
 * A pin leaves the gauge when it is quiet for a minute (`pins.quietMs`), and comes back with its next request: one that is
 * used now and then is bridged. Shorter than what each alert waits for, so that a short one is no alarm.
 */
const gap = 2 * minute;

const who =
  '{{ $labels.sidelight_reporter_kind }} of {{ or $labels.sidelight_reporter_workload "an unnamed workload" }}';
const endpoint = '{{ $labels.sidelight_endpoint }} of {{ $labels.sidelight_cluster }}';
const onEndpoint = [a.cluster, a.endpoint];

/** Who is still on an endpoint that left, and which endpoint is not used at all. */
export const endpointAlerts: readonly AlertRule[] = [
  {
    name: 'SidelightStalePinHttp',
    severity: 'ticket',
    meaning: 'HTTP requests go on over old connections to an endpoint that left.',
    parameters: ['staleHttp'],
    expr: ({ span }) =>
      `max_over_time(${recorded('sidelight:stale_pin_age_seconds:max', { [a.layer]: is('http') })}[${span(gap)}]) > 0`,
    forSeconds: ({ thresholds }) => thresholds.staleHttp,
    summary: `HTTP still goes to ${endpoint}, which left`,
    description: `${who} keeps a pool to it; the oldest connection is {{ $value | humanizeDuration }} old. Success tells nothing here: the old site answers.`,
    traces: { operation: 'stale pin', fromLabels: [...onEndpoint, a.layer] },
  },
  {
    name: 'SidelightStalePinTcp',
    severity: 'ticket',
    meaning: 'TCP connections to an endpoint that left are used on.',
    parameters: ['staleTcp'],
    expr: ({ span }) =>
      `max_over_time(${recorded('sidelight:stale_pin_age_seconds:max', { [a.layer]: is('tcp') })}[${span(gap)}]) > 0`,
    forSeconds: ({ thresholds }) => thresholds.staleTcp,
    summary: `TCP sessions stay on ${endpoint}, which left`,
    description: `${who} holds them; the oldest is {{ $value | humanizeDuration }} old. Only their end moves them.`,
    traces: { operation: 'stale pin', fromLabels: [...onEndpoint, a.layer] },
  },
  {
    name: 'SidelightStalePinBytes',
    severity: 'page',
    meaning: 'Real work still goes to an endpoint that left.',
    parameters: ['staleBytes'],
    expr: ({ thresholds }) =>
      [
        `  sidelight:pin_bytes:rate5m > ${thresholds.staleBytes}`,
        `and ${labels('on', endpointPlace)}`,
        '  sidelight:stale_pins:sum > 0',
      ].join('\n'),
    forSeconds: () => 5 * minute,
    keepSeconds: 5 * minute,
    summary: `Work still goes to ${endpoint}, which left`,
    description: `${who} moves {{ $value | humanize1024 }}B per second to and from it. Shut down now, that is lost.`,
    traces: { operation: 'stale pin', fromLabels: onEndpoint },
  },
  {
    name: 'SidelightDrainDoesNotEnd',
    severity: 'ticket',
    meaning: 'An endpoint that left is still connected, by whatever right.',
    parameters: ['drain'],
    expr: ({ span }) => `max_over_time(sidelight:left_pins:sum[${span(gap)}]) > 0`,
    forSeconds: ({ thresholds }) => thresholds.drain,
    summary: `${endpoint} left, and is not drained`,
    description: `${who} is still connected to it; connections ({{ $labels.sidelight_layer }}): {{ $value }}.`,
    traces: { fromLabels: onEndpoint },
  },
  {
    name: 'SidelightEndpointWithoutEvidence',
    severity: 'ticket',
    meaning: 'A listed endpoint gets no traffic, so that "no errors" says nothing of it.',
    parameters: ['evidence', 'connections'],
    expr({ thresholds, seconds, span }) {
      const byCluster = labels('by', [a.cluster]);
      // Proxies of several kinds may see the same call: the largest of them, not their sum.
      const attempts = `max ${byCluster} (sum ${labels('by', place)} (rate(${series('attempts')}[${span(5 * minute)}])))`;
      const tcp = `max ${byCluster} (sum ${labels('by', place)} (${series('pins', { [a.layer]: is('tcp') })}))`;
      return [
        '  sidelight:endpoint_unused:min > 0',
        `and ${labels('on', [a.cluster])}`,
        '  (',
        `    ${attempts} * ${seconds(5 * minute)} >= ${thresholds.evidence} * sidelight:endpoint_listed:max`,
        '  or',
        `    ${tcp} >= ${thresholds.connections} * sidelight:endpoint_listed:max`,
        '  )',
      ].join('\n');
    },
    forSeconds: () => 15 * minute,
    keepSeconds: 5 * minute,
    summary: 'Listed endpoints of {{ $labels.sidelight_cluster }} get no traffic',
    description:
      '{{ $value }} of its endpoints got none although the others had plenty. That they give no errors is no proof that they work.',
  },
];
