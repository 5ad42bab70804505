import { attribute as a } from '../emit/attributes.ts';
import type { Outcome } from '../model/verdict.ts';
import { endpointPlace, is, isNot, labels, type Match, pinPlace, place, series } from './promql.ts';
import type { Terms } from './terms.ts';

const minute = 60;
const hour = 60 * minute;

/** The windows in which masked failures are counted, by what the names of the rules say; seconds. */
const windows = { '5m': 5 * minute, '1h': hour, '2h': 2 * hour, '1d': 24 * hour } as const;
type Window = keyof typeof windows;

export interface RecordingRule {
  record: `sidelight:${string}`;
  /** What it says, in a few words. */
  meaning: string;
  expr: (terms: Terms) => string;
}

const anOutcome = (...outcomes: Outcome[]): Match => is(...outcomes);
const noOutcome = (...outcomes: Outcome[]): Match => isNot(...outcomes);

/** What would have happened to a hedged one is not known: it is in no rate. */
const notHedged = { [a.hedged]: is('') } as const;
const judged = { [a.outcome]: noOutcome('aborted', 'unknown'), [a.localResult]: isNot('client_error'), ...notHedged };
/** A local success needs no attempt, and counts as a first try. */
const served = (...outcomes: Outcome[]) => ({
  [a.outcome]: anOutcome(...outcomes, 'local'),
  [a.localResult]: is('', 'success'),
  ...notHedged,
});

const rate = (selector: string, window: string) => `sum ${labels('by', place)} (rate(${selector}[${window}]))`;
/** Where nothing came there is no ratio, not a zero. */
const ratio = (above: string, below: string) => `  ${above}\n/\n  (${below} > 0)`;

function ofRequests(matches: Parameters<typeof series<'requests'>>[1], below = judged) {
  return (window: Window, { span }: Terms) => {
    const text = span(windows[window]);
    return ratio(rate(series('requests', matches), text), rate(series('requests', below), text));
  };
}

const maskedShare = ofRequests({ [a.outcome]: anOutcome('masked'), ...notHedged });
const effectiveShare = ofRequests(served('ok', 'masked'));
const firstTryShare = ofRequests(served('ok'));
const exhaustedShare = ofRequests({ [a.outcome]: anOutcome('exhausted') });

const traffic: RecordingRule[] = [
  {
    record: 'sidelight:requests:rate5m',
    meaning: 'exchanges per second',
    expr: ({ span }) => rate(series('requests'), span(windows['5m'])),
  },
  {
    record: 'sidelight:attempted:rate5m',
    meaning: 'exchanges per second that had an attempt',
    expr: ({ span }) => rate(series('attemptedRequests'), span(windows['5m'])),
  },
  {
    record: 'sidelight:judged:rate5m',
    meaning: 'exchanges per second that count in the rates: without aborts, unknown, local client errors and hedged',
    expr: ({ span }) => rate(series('requests', judged), span(windows['5m'])),
  },
  {
    record: 'sidelight:effective:ratio5m',
    meaning: 'effective success: what the client saw',
    expr: (terms) => effectiveShare('5m', terms),
  },
  {
    record: 'sidelight:first_try:ratio5m',
    meaning: 'first-try success: what it would have seen without retries',
    expr: (terms) => firstTryShare('5m', terms),
  },
  {
    record: 'sidelight:actual:ratio5m',
    meaning: 'actual success, per attempt',
    expr({ span }) {
      const text = span(windows['5m']);
      const some = (...results: string[]) => series('attempts', { [a.result]: is(...results), ...notHedged });
      return ratio(rate(some('ok'), text), rate(some('ok', 'failed'), text));
    },
  },
  {
    record: 'sidelight:masked:ratio5m',
    meaning: 'masked: effective less first-try',
    expr: (terms) => maskedShare('5m', terms),
  },
  {
    record: 'sidelight:exhausted:ratio5m',
    meaning: 'failed although they were tried again',
    expr: (terms) => exhaustedShare('5m', terms),
  },
  {
    record: 'sidelight:aborted:ratio5m',
    meaning: 'of all exchanges: whose caller left first',
    expr({ span }) {
      const text = span(windows['5m']);
      const aborted = series('requests', { [a.outcome]: anOutcome('aborted') });
      return ratio(rate(aborted, text), rate(series('requests'), text));
    },
  },
  {
    record: 'sidelight:amplification:ratio5m',
    meaning: 'attempts per exchange that had one',
    expr({ span }) {
      const text = span(windows['5m']);
      return ratio(rate(series('attempts'), text), rate(series('attemptedRequests'), text));
    },
  },
];

const longTraffic: RecordingRule[] = [
  {
    record: 'sidelight:judged:rate1h',
    meaning: 'as the 5 minutes, over an hour',
    expr: ({ span }) => rate(series('requests', judged), span(windows['1h'])),
  },
  {
    record: 'sidelight:judged:rate1d',
    meaning: 'over a day',
    expr: ({ span }) => rate(series('requests', judged), span(windows['1d'])),
  },
  {
    record: 'sidelight:masked:ratio1h',
    meaning: 'masked, over an hour',
    expr: (terms) => maskedShare('1h', terms),
  },
  { record: 'sidelight:masked:ratio2h', meaning: 'over 2 hours', expr: (terms) => maskedShare('2h', terms) },
  { record: 'sidelight:masked:ratio1d', meaning: 'over a day', expr: (terms) => maskedShare('1d', terms) },
];

/** Pins that nobody expects: the config marks the others. */
const unexpected = { [a.expected]: is('') } as const;
const stale = { [a.pin]: is('stale', 'stale_view'), ...unexpected };

const endpoints: RecordingRule[] = [
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
    expr: ({ span }) => `sum ${labels('by', endpointPlace)} (rate(${series('pinBytes')}[${span(windows['5m'])}]))`,
  },
  {
    record: 'sidelight:pin_requests:rate5m',
    meaning: 'requests per second to endpoints that left',
    expr: ({ span }) => `sum ${labels('by', endpointPlace)} (rate(${series('pinRequests')}[${span(windows['5m'])}]))`,
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
      const text = span(windows['5m']);
      const attempts = series('attempts');
      return [
        `  sum ${labels('by', endpointPlace)} (rate(${attempts}[${text}]))`,
        `/ ${labels('on', place)} group_left ()`,
        `  (${rate(attempts, text)} > 0)`,
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

const sight: RecordingRule[] = [
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

export interface RecordingGroup {
  name: string;
  /** Seconds; absent: as Prometheus is set. */
  everySeconds?: number;
  rules: readonly RecordingRule[];
}

/** What is computed, in the order in which one needs the other. */
export const recordingGroups: readonly RecordingGroup[] = [
  { name: 'sidelight-traffic', rules: traffic },
  // A day's rate changes slowly, and costs.
  { name: 'sidelight-traffic-long', everySeconds: minute, rules: longTraffic },
  { name: 'sidelight-endpoints', rules: endpoints },
  { name: 'sidelight-sight', rules: sight },
];
