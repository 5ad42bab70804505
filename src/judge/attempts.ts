import type { Attempt, Exchange } from '../model/exchange.ts';
import type { ResponseFlag } from '../model/response-flag.ts';
import type { AttemptVerdict } from '../model/verdict.ts';
import { causeOf } from './cause.ts';
import { brokenPhase, type StatusRule, statusSucceeds } from './success.ts';
import { isEndedTunnel } from './tunnel.ts';

/** Flags of an attempt that say that the client, not the upstream, ended it. */
const clientLeft: ReadonlySet<ResponseFlag> = new Set(['DC', 'DR']);
/** Flags of an attempt that say that it failed, where no response of it was delivered. */
const attemptFailed: ReadonlySet<ResponseFlag> = new Set([
  'UF',
  'UC',
  'UR',
  'UT',
  'UPE',
  'UO',
  'UDO',
  'LR',
  'SI',
  'UMSDR',
  'DT',
]);

/** One verdict per attempt, same order. */
export function judgeAttempts(exchange: Exchange, rule: StatusRule): AttemptVerdict[] {
  return exchange.attempts.map((attempt, index) => judgeAttempt(exchange, attempt, index, rule));
}

function judgeAttempt(exchange: Exchange, attempt: Attempt, index: number, rule: StatusRule): AttemptVerdict {
  const failed = (): AttemptVerdict => ({ result: 'failed', cause: causeOf(attempt, exchange) });
  if (index === exchange.delivered) {
    // Its gRPC status, if any, is one that Envoy made up.
    if (isAborted(exchange)) return (attempt.code ?? 0) >= rule.httpFailFrom ? failed() : clientCancelled;
    const whole = brokenPhase(exchange) === undefined;
    return whole && statusSucceeds(exchange, rule) ? ok : failed();
  }
  if (attempt.code === undefined) return judgeUnanswered(exchange, attempt, index, failed);
  if (attempt.flags.some((flag) => attemptFailed.has(flag)) || statusFails(exchange, attempt, rule)) return failed();
  // A good status that was not delivered: a followed redirect, or a status that the route retries.
  return exchange.redirects > 0 || index === exchange.attempts.length - 1 ? ok : failed();
}

/** No response head came: it failed, unless the client left or another hedge won. */
function judgeUnanswered(
  exchange: Exchange,
  attempt: Attempt,
  index: number,
  failed: () => AttemptVerdict,
): AttemptVerdict {
  if (attempt.flags.some((flag) => clientLeft.has(flag))) return clientCancelled;
  if (attempt.flags.some((flag) => attemptFailed.has(flag))) return failed();
  if (isAborted(exchange) && index === exchange.attempts.length - 1) return clientCancelled;
  return exchange.delivered === undefined ? failed() : superseded;
}

const ok: AttemptVerdict = { result: 'ok', cause: undefined };
const superseded: AttemptVerdict = { result: 'superseded', cause: undefined };
const clientCancelled: AttemptVerdict = { result: 'client_cancelled', cause: undefined };

/** An attempt without a gRPC status fails only where its stream ended: a cut one never had the chance. */
function statusFails(exchange: Exchange, attempt: Attempt, rule: StatusRule): boolean {
  const { isGrpc } = exchange;
  if (isGrpc && attempt.grpcStatus === undefined)
    return attempt.code !== undefined && attempt.code >= rule.httpFailFrom;
  return !statusSucceeds({ code: attempt.code, grpcStatus: attempt.grpcStatus, isGrpc }, rule);
}

/** The client left. Looked at before any gRPC status: Envoy makes one up then. Envoy 1.40, test/e2e/flags.test.ts. */
export function isAborted(exchange: Exchange): boolean {
  return exchange.flags.some((flag) => clientLeft.has(flag)) && !isEndedTunnel(exchange);
}
