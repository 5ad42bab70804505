import type { Chain } from './chain.ts';
import type { Exchange, IncompleteReason } from './exchange.ts';
import type { SourceKind } from './view.ts';

export const outcomes = ['ok', 'masked', 'exhausted', 'failed', 'aborted', 'local', 'unknown'] as const;
export type Outcome = (typeof outcomes)[number];

/** `unknown` is of TCP connections alone: through a tunnel nothing came back, and nobody says whether it was ever made. */
export const attemptResults = ['ok', 'failed', 'superseded', 'client_cancelled', 'unknown'] as const;
export type AttemptResult = (typeof attemptResults)[number];

/** Why an attempt failed. Closed, so that it can label a metric. */
export const causes = [
  'connect_failure',
  'connect_timeout',
  'reset',
  'refused_stream',
  'connection_termination',
  'per_try_timeout',
  'timeout',
  'overflow',
  'protocol_error',
  'tls_failure',
  'status_5xx',
  'retriable_status',
  'grpc_status',
  'unknown',
] as const;
export type Cause = (typeof causes)[number];

/** The phase in which a response broke or the client left. */
export type Phase = 'before_headers' | 'in_body';

export type LocalResult = 'success' | 'client_error' | 'server_error';
/** Why a failure was not retried: a breaker (`overflow`), the retry limit (`limit`), or no retry was asked for (`none`). */
export type RetryDenied = 'limit' | 'overflow' | 'none';

export interface AttemptVerdict {
  result: AttemptResult;
  /** Only with result `failed`. */
  cause: Cause | undefined;
}

/** What `judge` says of an exchange. Optional parts are present only with the outcome that they belong to. */
export interface Verdict {
  outcome: Outcome;
  unknownReason: IncompleteReason | undefined;
  /** Of `aborted`. */
  phase: Phase | undefined;
  /** Of `aborted`: an attempt had failed by then. */
  failedBeforeAbort: boolean;
  /** Of a failure: where the response broke. */
  failedPhase: Phase | undefined;
  localResult: LocalResult | undefined;
  retryDenied: RetryDenied | undefined;
  /** A hedge won after a per-try timeout: left out of the rates, because what would have happened is not known. */
  hedged: boolean;
  /** One per attempt, same order. */
  attempts: readonly AttemptVerdict[];
  /** Winner's start − first attempt's start, of `masked`. */
  maskedLatencyMs: number | undefined;
  /** First failed attempt's cause, of `masked` and `exhausted` and `failed`. */
  cause: Cause | undefined;
  /** Of the delivered attempt, else of the last one; absent without an attempt. */
  pin: PinVerdict | undefined;
}

export const pins = ['current', 'draining', 'stale', 'stale_view', 'unlisted', 'unknown'] as const;
export type Pin = (typeof pins)[number];

/** Whether the endpoint of a connection with this pin has left its list. */
export function hasLeft(pin: Pin): boolean {
  return pin === 'draining' || pin === 'stale' || pin === 'stale_view';
}

export const pinUnknownReasons = [
  /** No source covers the cluster. */
  'no_source',
  /** The source covers it, but has not answered yet. */
  'no_answer_yet',
  /** The source has not answered for longer than its stated time. */
  'source_stale',
  /** Never seen listed, and the connection is older than our first view of the cluster. */
  'older_than_view',
  /** The endpoint has no address that the source could list (a pipe, a listener of Envoy's own). */
  'no_address',
  /** The DNS source does not use the proxy's own resolver. */
  'other_resolver',
  /** Envoy did not say how old the connection is. */
  'age_unknown',
  /** The endpoint is at the other end of a tunnel (HBONE), and what is there, or since when, is not told. */
  'tunnelled',
  /** The address passed to another endpoint at about the time when the connection was opened: it may be on either. */
  'owner_unclear',
] as const;
export type PinUnknownReason = (typeof pinUnknownReasons)[number];

export interface PinVerdict {
  pin: Pin;
  /** Only with `unknown`. */
  reason: PinUnknownReason | undefined;
  /** When the endpoint left, epoch ms, our clock; only with `draining`, `stale`, `stale_view`. */
  leftAtMs: number | undefined;
  source: SourceKind | undefined;
}

export interface JudgedExchange {
  exchange: Exchange;
  verdict: Verdict;
  /** From its own proxy inwards; absent where it is not known, and of the innermost. */
  chain: Chain | undefined;
}
