import type { Exchange } from '../model/exchange.ts';
import type { ResponseFlag } from '../model/response-flag.ts';
import type { Phase } from '../model/verdict.ts';

/** Which statuses fail. The rest succeed. */
export interface StatusRule {
  /** The lowest HTTP status that fails, 100-600; 500 by default. */
  httpFailFrom: number;
  /** gRPC status numbers that fail. */
  grpcFail: ReadonlySet<number>;
}

/** UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS: what a server did wrong, not what it answered. */
export const defaultStatusRule: StatusRule = { httpFailFrom: 500, grpcFail: new Set([2, 4, 12, 13, 14, 15]) };

/** The upstream, or the wait for it, broke the response: true even under status 200. */
const brokenBy: ReadonlySet<ResponseFlag> = new Set(['UC', 'UR', 'UPE', 'UT', 'SI', 'UMSDR', 'DT']);

/** Whether a finished exchange succeeded. A response broken in its body failed, whatever its status. */
export function succeeded(exchange: Exchange, rule: StatusRule): boolean {
  return statusSucceeds(exchange, rule) && brokenPhase(exchange) === undefined;
}

/** By status alone. A missing gRPC status at the end fails; a missing HTTP status fails. */
export function statusSucceeds(
  response: { code: number | undefined; grpcStatus: number | undefined; isGrpc: boolean },
  rule: StatusRule,
): boolean {
  if (response.code === undefined || response.code >= rule.httpFailFrom) return false;
  if (!response.isGrpc) return true;
  return response.grpcStatus !== undefined && !rule.grpcFail.has(response.grpcStatus);
}

/**
 * Where the upstream broke the response, by flags and details; absent where nothing broke it.
 * The flags of a hedge's loser, or of a per-try timeout that a retry answered, do not reach the downstream entry,
 * with one exception: a hedge that wins after its own per-try timeout carries UT and still went out whole.
 */
export function brokenPhase(exchange: Exchange): Phase | undefined {
  if (exchange.codeDetails?.startsWith('upstream_reset_after_response_started')) return 'in_body';
  if (!exchange.flags.some((flag) => brokenBy.has(flag))) return undefined;
  return exchange.delivered === undefined ? 'before_headers' : 'in_body';
}
