import type { Chain } from '../model/chain.ts';
import { judgedAttempt, wasSent } from '../model/exchange.ts';
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
import { rounded } from './spans/chain-attributes.ts';
import { traceIdOf } from './spans/parent.ts';
import { pathOnly } from './spans/request-attributes.ts';

/** An attempt in short. Times in ms. */
export interface RecentAttempt {
  number: number;
  endpoint: string;
  result: AttemptResult | undefined;
  cause: Cause | undefined;
  /** Of a failed one: whether any byte of the request was sent; absent where that is not known. */
  sent: boolean | undefined;
  /** From the exchange's start to its own. */
  offsetMs: number;
  durationMs: number | undefined;
  code: number | undefined;
  connectionId: string | undefined;
  connectionAgeMs: number | undefined;
}

/** A layer of a chain of proxies in short. */
export interface RecentLayer {
  reporterKind: ReporterKind;
  workload: string;
  namespace: string;
  exchanges: number;
  attempts: number;
  failed: number;
}

/** How a request multiplied on its way through several proxies, the outermost first. */
export interface RecentChain {
  amplification: number;
  layers: RecentLayer[];
  /** Of a failure: where it came from, an index in `layers`. */
  origin: number | undefined;
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
  /** The trace that the request was in; absent where there was none. */
  traceId: string | undefined;
  /** Whether spans of it were made here. */
  traced: boolean;
  /** Of several proxies in a row, from its own inwards; absent where it is not known. */
  chain: RecentChain | undefined;
  attempts: RecentAttempt[];
}

export interface RecentQuery {
  outcome?: Outcome | undefined;
  /** Only those of this trace, 32 hex digits in lower case. */
  trace?: string | undefined;
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

  /**
   * Remembers one if it is worth it: not a plain success, or over a pinned connection. `spansOf`: the trace in which
   * spans were made of it. `nowMs`: epoch ms.
   */
  add(judged: JudgedExchange, spansOf: string | undefined, nowMs: number): void {
    if (!isInteresting(judged)) return;
    const { outcome } = judged.verdict;
    const list = this.#lists.get(outcome) ?? [];
    this.#lists.set(outcome, list);
    list.push({ atMs: nowMs, exchange: summary(judged, spansOf) });
    if (list.length > this.#perOutcome) list.shift();
  }

  /** Newest first. */
  list({ outcome, trace, limit }: RecentQuery): RecentExchange[] {
    const lists = outcome === undefined ? [...this.#lists.values()] : [this.#lists.get(outcome) ?? []];
    return lists
      .flat()
      .filter(({ exchange }) => trace === undefined || exchange.traceId === trace)
      .toSorted((a, b) => b.atMs - a.atMs)
      .slice(0, limit)
      .map(({ exchange }) => exchange);
  }
}

function isInteresting({ verdict: { outcome, localResult, pin } }: JudgedExchange): boolean {
  if (pin !== undefined && hasLeft(pin.pin)) return true;
  return outcome === 'local' ? localResult === 'server_error' : outcome !== 'ok';
}

function summary({ exchange, verdict, chain }: JudgedExchange, spansOf: string | undefined): RecentExchange {
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
    traceId: spansOf ?? traceIdOf(exchange),
    traced: spansOf !== undefined,
    chain: chain && chainSummary(chain),
    attempts: exchange.attempts.map((attempt, index) => ({
      number: attempt.number,
      endpoint: attempt.peer.text,
      result: verdict.attempts[index]?.result,
      cause: verdict.attempts[index]?.cause,
      sent: verdict.attempts[index]?.result === 'failed' ? wasSent(attempt) : undefined,
      offsetMs: attempt.startMs - exchange.startMs,
      durationMs: attempt.durationMs,
      code: attempt.code,
      connectionId: attempt.connectionId,
      connectionAgeMs: attempt.connectionAgeMs,
    })),
  };
}

function chainSummary({ amplification, layers, origin }: Chain): RecentChain {
  return {
    amplification: rounded(amplification),
    layers: layers.map(({ kind, workload, namespace, exchanges, attempts, failed }) => ({
      reporterKind: kind,
      workload,
      namespace,
      exchanges,
      attempts,
      failed,
    })),
    origin: origin && layers.indexOf(origin),
  };
}
