import { type AttemptResult, type Cause, causes, type JudgedExchange, type LocalResult } from '../../model/verdict.ts';

/** What is counted of a cluster, besides the masked exchanges by cause. Whole numbers; `maskedMs` is a sum of ms. */
export const countNames = [
  'ok',
  'masked',
  /** Of `masked`: a hedge won, so they are left out of the rates. */
  'hedged',
  'exhausted',
  'failed',
  'aborted',
  'localSuccess',
  'localClientError',
  'localServerError',
  'unknown',
  /** Exchanges with at least one attempt. */
  'attempted',
  'attempts',
  /** Without those of hedged exchanges, as the rate has it. */
  'attemptsOk',
  'attemptsFailed',
  /** Of `masked` that are not hedged: what the failed attempts before the winner cost. */
  'maskedMs',
  /** Profile `tag`: requests that Envoy tried more than once. */
  'retried',
] as const;
export type CountName = (typeof countNames)[number];

const at = Object.fromEntries(countNames.map((name, index) => [name, index])) as Record<CountName, number>;
const causeAt = Object.fromEntries(causes.map((cause, index) => [cause, countNames.length + index])) as Record<
  Cause,
  number
>;

/** How many numbers one cluster has. */
export const countsLength = countNames.length + causes.length;

/** Where they are written: one row of a typed array. */
export interface CountsRow {
  numbers: Uint32Array | Float64Array;
  from: number;
}

/** Adds one exchange. The attempts of another cluster (after an internal redirect) count there: see `countAttempts`. */
export function countExchange({ numbers, from }: CountsRow, { exchange, verdict }: JudgedExchange): void {
  const add = (place: number, amount = 1) => {
    numbers[from + place] = (numbers[from + place] ?? 0) + amount;
  };
  add(at[outcomeCount(verdict)]);
  if (exchange.attempts.length > 0) add(at.attempted);
  if (verdict.outcome !== 'masked') return;
  if (verdict.hedged) {
    add(at.hedged);
    return;
  }
  add(causeAt[verdict.cause ?? 'unknown']);
  add(at.maskedMs, Math.round(verdict.maskedLatencyMs ?? 0));
}

/** Adds one attempt. */
export function countAttempt({ numbers, from }: CountsRow, result: AttemptResult, hedged: boolean): void {
  const add = (place: number) => {
    numbers[from + place] = (numbers[from + place] ?? 0) + 1;
  };
  add(at.attempts);
  if (hedged) return;
  if (result === 'ok') add(at.attemptsOk);
  if (result === 'failed') add(at.attemptsFailed);
}

/** Adds one request of profile `tag`, whose outcome nobody sees. */
export function countTagged({ numbers, from }: CountsRow, retried: boolean): void {
  numbers[from + at.unknown] = (numbers[from + at.unknown] ?? 0) + 1;
  if (retried) numbers[from + at.retried] = (numbers[from + at.retried] ?? 0) + 1;
}

const localCounts: Record<LocalResult, CountName> = {
  success: 'localSuccess',
  client_error: 'localClientError',
  server_error: 'localServerError',
};

function outcomeCount({ outcome, localResult = 'server_error' }: JudgedExchange['verdict']): CountName {
  return outcome === 'local' ? localCounts[localResult] : outcome;
}

/** As plain JSON; what is 0 is left out. `causes`: masked exchanges by their first failed attempt's cause. */
export type Counts = Partial<Record<CountName, number>> & { causes?: Partial<Record<Cause, number>> };

export function readCounts({ numbers, from }: CountsRow): Counts {
  const value = (place: number) => numbers[from + place] ?? 0;
  const named = countNames.filter((name) => value(at[name]) > 0).map((name) => [name, value(at[name])]);
  const masked = causes.filter((cause) => value(causeAt[cause]) > 0).map((cause) => [cause, value(causeAt[cause])]);
  const counts = Object.fromEntries(named) as Counts;
  return masked.length === 0 ? counts : { ...counts, causes: Object.fromEntries(masked) as Counts['causes'] & {} };
}

/** The three numbers of a sparkline: how many count in the rates, and how many of them succeeded, at all and at once. */
export interface Trend {
  counted: number;
  effective: number;
  firstTry: number;
}

export function readTrend({ numbers, from }: CountsRow): Trend {
  const value = (name: CountName) => numbers[from + at[name]] ?? 0;
  const firstTry = value('ok') + value('localSuccess');
  const effective = firstTry + value('masked') - value('hedged');
  const counted = effective + value('exhausted') + value('failed') + value('localServerError');
  return { counted, effective, firstTry };
}
