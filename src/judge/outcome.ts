import { type Exchange, judgedAttempt } from '../model/exchange.ts';
import type { AttemptVerdict, LocalResult, Phase, PinVerdict, RetryDenied, Verdict } from '../model/verdict.ts';
import { isAborted, judgeAttempts } from './attempts.ts';
import { brokenPhase, type StatusRule, statusSucceeds, succeeded } from './success.ts';

/**
 * The verdict on an exchange; the first row that matches wins.
 *
 *     a  not whole                                → unknown + reason
 *     b  details `internal_redirect`              → no end: `assemble` goes on
 *     c  the client left                          → aborted
 *     d  no attempt reached a peer                → local
 *     e  success, and an attempt before failed    → masked
 *     f  success otherwise                        → ok
 *     g  failure, two attempts or more, or URX    → exhausted
 *     h  failure otherwise                        → failed
 *
 * Total: any exchange gets exactly one outcome. `pin` is the delivered (else the last) attempt's, judged by the caller.
 */
export function judgeExchange(exchange: Exchange, rule: StatusRule, pin: PinVerdict | undefined): Verdict {
  const attempts = judgeAttempts(exchange, rule);
  const base = { ...blank, attempts, pin };
  if (exchange.incomplete !== undefined) return { ...base, outcome: 'unknown', unknownReason: exchange.incomplete };
  if (isAborted(exchange)) return { ...base, ...aborted(exchange, attempts) };
  if (exchange.attempts.length === 0) return { ...base, outcome: 'local', localResult: localResult(exchange, rule) };
  return { ...base, ...(succeeded(exchange, rule) ? success(exchange, attempts) : failure(exchange, attempts)) };
}

const blank: Verdict = {
  outcome: 'ok',
  unknownReason: undefined,
  phase: undefined,
  failedBeforeAbort: false,
  failedPhase: undefined,
  localResult: undefined,
  retryDenied: undefined,
  hedged: false,
  attempts: [],
  maskedLatencyMs: undefined,
  cause: undefined,
  pin: undefined,
};

function aborted(exchange: Exchange, attempts: readonly AttemptVerdict[]): Partial<Verdict> {
  const phase: Phase = exchange.code === undefined ? 'before_headers' : 'in_body';
  return { outcome: 'aborted', phase, failedBeforeAbort: attempts.some(isFailed) };
}

function localResult(exchange: Exchange, rule: StatusRule): LocalResult {
  if (exchange.code !== undefined && exchange.code >= 400 && exchange.code < 500) return 'client_error';
  if (!statusSucceeds(exchange, rule)) return 'server_error';
  // A refusal, such as PERMISSION_DENIED: gRPC says it under HTTP 200.
  return exchange.isGrpc && exchange.grpcStatus !== 0 ? 'client_error' : 'success';
}

function success(exchange: Exchange, attempts: readonly AttemptVerdict[]): Partial<Verdict> {
  const firstFailed = attempts.find((attempt, index) => index !== exchange.delivered && isFailed(attempt));
  if (firstFailed === undefined) return { outcome: 'ok' };
  return {
    outcome: 'masked',
    cause: firstFailed.cause,
    hedged: isHedged(exchange),
    maskedLatencyMs: maskedLatency(exchange),
  };
}

function failure(exchange: Exchange, attempts: readonly AttemptVerdict[]): Partial<Verdict> {
  const exhausted = exchange.attempts.length >= 2 || exchange.flags.includes('URX');
  return {
    outcome: exhausted ? 'exhausted' : 'failed',
    cause: attempts.find(isFailed)?.cause ?? 'unknown',
    failedPhase: brokenPhase(exchange) ?? 'before_headers',
    retryDenied: retryDenied(exchange),
  };
}

/** The whole cost of the hidden attempts: from the first attempt's start to the winner's, ms. */
function maskedLatency(exchange: Exchange): number | undefined {
  const winner = judgedAttempt(exchange);
  const first = exchange.attempts[0];
  return winner === undefined || first === undefined ? undefined : winner.startMs - first.startMs;
}

/** Attempts that ran side by side: a loser was still running when the winner started, or the winner started first. */
function isHedged(exchange: Exchange): boolean {
  const winner = exchange.delivered === undefined ? undefined : exchange.attempts[exchange.delivered];
  if (winner === undefined) return false;
  return exchange.attempts.some(
    (attempt) => attempt !== winner && attempt.startMs + (attempt.durationMs ?? 0) > winner.startMs,
  );
}

/** UO beside an upstream's own answer means that the retry breaker refused (Envoy 1.40). */
function retryDenied(exchange: Exchange): RetryDenied {
  if (exchange.flags.includes('URX')) return 'limit';
  return exchange.flags.includes('UO') ? 'overflow' : 'none';
}

function isFailed(attempt: AttemptVerdict): boolean {
  return attempt.result === 'failed';
}
