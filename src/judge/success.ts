import type { EndKind } from '../model/chain.ts';
import type { Exchange } from '../model/exchange.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { ResponseFlag } from '../model/response-flag.ts';
import type { Phase } from '../model/verdict.ts';
import { isEndedTunnel } from './tunnel.ts';

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

/** How the exchange ended that an entry ends, by this entry alone. */
export function endOf(end: LogEntry, rule: StatusRule): EndKind {
  if (end.flags.includes('DC') || end.flags.includes('DR')) return 'aborted';
  const { grpcStatus, isGrpc } = end.tags;
  return !statusSucceeds({ code: end.code, grpcStatus, isGrpc }, rule) || isBroken(end) ? 'failed' : 'succeeded';
}

/** Details of a response that was cut, also where no flag says so: Envoy 1.40 sets none for `max_duration_timeout`. */
const cutShort = /^(?:upstream_reset_after_response_started|response_timeout|stream_idle_timeout|max_duration_timeout)/;

/** Where the upstream, or the wait for it, broke the response, by flags and details; absent where nothing did. */
export function brokenPhase(exchange: Exchange): Phase | undefined {
  if (!isBroken(exchange) || isEndedTunnel(exchange)) return undefined;
  return exchange.delivered === undefined ? 'before_headers' : 'in_body';
}

function isBroken({ flags, codeDetails }: Pick<Exchange, 'flags' | 'codeDetails'>): boolean {
  return flags.some((flag) => brokenBy.has(flag)) || cutShort.test(codeDetails ?? '');
}
