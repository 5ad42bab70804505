import { judgedAttempt } from '../model/exchange.ts';
import type { ReporterKind } from '../model/reporter.ts';
import {
  type AttemptResult,
  type Cause,
  hasLeft,
  type JudgedExchange,
  type Outcome,
  outcomes,
  type Pin,
} from '../model/verdict.ts';
import { pathOnly } from './spans/request-attributes.ts';

/** An attempt in short. Times in ms. */
export interface RecentAttempt {
  number: number;
  endpoint: string;
  result: AttemptResult | undefined;
  cause: Cause | undefined;
  /** From the exchange's start to its own. */
  offsetMs: number;
  durationMs: number | undefined;
  code: number | undefined;
  connectionId: string | undefined;
  connectionAgeMs: number | undefined;
}

/** An exchange in short, for the API. Without query or headers. */
export interface RecentExchange {
  /** Its start, epoch ms, Envoy's clock. */
  startMs: number;
  durationMs: number | undefined;
  outcome: Outcome;
  cause: Cause | undefined;
  cluster: string | undefined;
  endpoint: string | undefined;
  reporterKind: ReporterKind;
  workload: string;
  namespace: string;
  pod: string;
  method: string | undefined;
  path: string | undefined;
  code: number | undefined;
  flags: readonly string[];
  pin: Pin | undefined;
  pinReason: string | undefined;
  /** Epoch ms, our clock. */
  leftAtMs: number | undefined;
  unknownReason: string | undefined;
  maskedLatencyMs: number | undefined;
  /** Absent if no span was made. */
  traceId: string | undefined;
  attempts: RecentAttempt[];
}

export interface RecentQuery {
  outcome?: Outcome | undefined;
  limit: number;
}

const longestPath = 256;

/** The latest exchanges that somebody may ask about, so many per outcome: a flood of one kind hides no other. */
export class RecentExchanges {
  readonly #perOutcome: number;
  readonly #lists = new Map<Outcome, { atMs: number; exchange: RecentExchange }[]>();

  /** `max`: how many are held in all; each outcome has the same share. */
  constructor(max: number) {
    this.#perOutcome = Math.floor(max / outcomes.length);
  }

  /** Remembers one if it is worth it: not a plain success, or over a pinned connection. `nowMs`: epoch ms. */
  add(judged: JudgedExchange, traceId: string | undefined, nowMs: number): void {
    if (!isInteresting(judged)) return;
    const { outcome } = judged.verdict;
    const list = this.#lists.get(outcome) ?? [];
    this.#lists.set(outcome, list);
    list.push({ atMs: nowMs, exchange: summary(judged, traceId) });
    if (list.length > this.#perOutcome) list.shift();
  }

  /** Newest first. */
  list({ outcome, limit }: RecentQuery): RecentExchange[] {
    const lists = outcome === undefined ? [...this.#lists.values()] : [this.#lists.get(outcome) ?? []];
    return lists
      .flat()
      .toSorted((a, b) => b.atMs - a.atMs)
      .slice(0, limit)
      .map(({ exchange }) => exchange);
  }
}

function isInteresting({ verdict: { outcome, localResult, pin } }: JudgedExchange): boolean {
  if (pin !== undefined && hasLeft(pin.pin)) return true;
  return outcome === 'local' ? localResult === 'server_error' : outcome !== 'ok';
}

function summary({ exchange, verdict }: JudgedExchange, traceId: string | undefined): RecentExchange {
  const { reporter } = exchange;
  return {
    startMs: exchange.startMs,
    durationMs: exchange.durationMs,
    outcome: verdict.outcome,
    cause: verdict.cause,
    cluster: exchange.cluster,
    endpoint: judgedAttempt(exchange)?.peer.text,
    reporterKind: reporter.kind,
    workload: reporter.workload,
    namespace: reporter.namespace,
    pod: reporter.pod,
    method: exchange.method,
    path: pathOnly(exchange.path)?.slice(0, longestPath),
    code: exchange.code,
    flags: exchange.flags,
    pin: verdict.pin?.pin,
    pinReason: verdict.pin?.reason,
    leftAtMs: verdict.pin?.leftAtMs,
    unknownReason: verdict.unknownReason,
    maskedLatencyMs: verdict.maskedLatencyMs,
    traceId,
    attempts: exchange.attempts.map((attempt, index) => ({
      number: attempt.number,
      endpoint: attempt.peer.text,
      result: verdict.attempts[index]?.result,
      cause: verdict.attempts[index]?.cause,
      offsetMs: attempt.startMs - exchange.startMs,
      durationMs: attempt.durationMs,
      code: attempt.code,
      connectionId: attempt.connectionId,
      connectionAgeMs: attempt.connectionAgeMs,
    })),
  };
}
