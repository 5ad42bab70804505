import { attribute as a } from '../../emit/attributes.ts';
import type { Outcome } from '../../model/verdict.ts';
import { is, isNot, labels, type Match, place, series } from '../promql.ts';
import type { Terms } from '../terms.ts';
import { type RecordingRule, ratio } from './recording-rule.ts';

const minute = 60;
const hour = 60 * minute;

/** The windows in which masked failures are counted, by what the names of the rules say; seconds. */
const windows = { '5m': 5 * minute, '1h': hour, '2h': 2 * hour, '1d': 24 * hour } as const;
type Window = keyof typeof windows;

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

/** The rates of the last 5 minutes. */
export const traffic: RecordingRule[] = [
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

/** What a budget is measured by. */
export const longTraffic: RecordingRule[] = [
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
