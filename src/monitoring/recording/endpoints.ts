import { attribute as a } from '../../emit/attributes.ts';
import { endpointPlace, is, labels, pinPlace, place, series } from '../promql.ts';
import type { RecordingRule } from './recording-rule.ts';

const window = 5 * 60;

/** Pins that nobody expects: the config marks the others. */
const unexpected = { [a.expected]: is('') } as const;
const stale = { [a.pin]: is('stale', 'stale_view'), ...unexpected };

/** Who is on endpoints that left, and how much each listed one gets. */
export const endpoints: RecordingRule[] = [
  {
    record: 'sidelight:stale_pins:sum',
    meaning: 'stale pins that nobody expects, per endpoint and layer',
    expr: () => `sum ${labels('by', pinPlace)} (${series('pins', stale)})`,
  },
  {
    record: 'sidelight:stale_pin_age_seconds:max',
    meaning: 'the age of the oldest of them',
    expr: () => `max ${labels('by', pinPlace)} (${series('pinOldest', stale)})`,
  },
  {
    record: 'sidelight:left_pins:sum',
    meaning: 'connections to endpoints that left, the draining ones included',
    expr: () =>
      `sum ${labels('by', pinPlace)} (${series('pins', { [a.pin]: is('draining', 'stale', 'stale_view'), ...unexpected })})`,
  },
  {
    record: 'sidelight:pin_bytes:rate5m',
    meaning: 'bytes per second, both ways, to endpoints that left',
    expr: ({ span }) => `sum ${labels('by', endpointPlace)} (rate(${series('pinBytes')}[${span(window)}]))`,
  },
  {
    record: 'sidelight:pin_requests:rate5m',
    meaning: 'requests per second to endpoints that left',
    expr: ({ span }) => `sum ${labels('by', endpointPlace)} (rate(${series('pinRequests')}[${span(window)}]))`,
  },
  {
    record: 'sidelight:endpoint_listed:max',
    meaning: 'listed endpoints of a cluster',
    expr: () => `max ${labels('by', [a.cluster])} (${series('endpointListed')})`,
  },
  {
    record: 'sidelight:endpoint_share:ratio5m',
    meaning: "an endpoint's share of the attempts, over its fair share; 1 is fair",
    expr({ span }) {
      const text = span(window);
      const attempts = series('attempts');
      return [
        `  sum ${labels('by', endpointPlace)} (rate(${attempts}[${text}]))`,
        `/ ${labels('on', place)} group_left ()`,
        `  (sum ${labels('by', place)} (rate(${attempts}[${text}])) > 0)`,
        `* ${labels('on', [a.cluster])} group_left ()`,
        '  sidelight:endpoint_listed:max',
      ].join('\n');
    },
  },
  {
    record: 'sidelight:endpoint_unused:min',
    meaning: 'listed endpoints without evidence: with several replicas the most that it can be',
    expr: () => `min ${labels('by', [a.cluster])} (${series('endpointUnused')})`,
  },
];
