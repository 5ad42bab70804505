import { isSilentTunnel } from '../model/endpoint.ts';
import type { Attempt, Exchange } from '../model/exchange.ts';
import type { ResponseFlag } from '../model/response-flag.ts';
import type { Cause } from '../model/verdict.ts';

/** Flag → cause, the first in this order that an entry carries. UF and UR need a closer look and are not here. */
const byFlag: readonly (readonly [ResponseFlag, Cause])[] = [
  ['UO', 'overflow'],
  ['UDO', 'overflow'],
  ['UC', 'connection_termination'],
  ['UPE', 'protocol_error'],
  ['UMSDR', 'timeout'],
  ['DT', 'timeout'],
  ['SI', 'timeout'],
  ['LR', 'reset'],
];

/** Why a failed attempt failed: from its own facts, else (no flag, and no code that fails) from the exchange's end. */
export function causeOf(attempt: Attempt, exchange: Exchange): Cause {
  if (isUntold(attempt)) return 'unknown';
  if (isRefusedStream(attempt, exchange)) return 'refused_stream';
  const own = causeFromFlags(attempt.flags, attempt.transportFailure, attempt.code);
  if (own !== undefined) return own;
  if (attempt.code !== undefined && attempt.code >= 500) return 'status_5xx';
  const end = causeFromEnd(exchange);
  if (attempt.code === undefined || (end !== 'unknown' && isLast(attempt, exchange))) return end;
  return exchange.isGrpc && attempt.grpcStatus !== 0 ? 'grpc_status' : 'retriable_status';
}

/**
 * Through a tunnel a refused connect, an absent ztunnel, and a server that hangs up all show as a connection that broke
 * (UC): the one to Envoy's own listener. Envoy 1.40, test/istio/hbone.test.ts.
 */
function isUntold({ peer, code, flags }: Attempt): boolean {
  return isSilentTunnel(peer, code) && (flags.includes('UC') || flags.includes('UF'));
}

function isLast(attempt: Attempt, exchange: Exchange): boolean {
  return attempt === exchange.attempts.at(-1);
}

/** An attempt's entry says only UR; the details, which are about the last attempt, tell a refused stream from a reset. */
function isRefusedStream(attempt: Attempt, exchange: Exchange): boolean {
  return attempt.flags.includes('UR') && isLast(attempt, exchange) && (exchange.codeDetails ?? '').includes('refused');
}

/** What flags alone say; absent where they name no failure. `code`: the response status, absent where none came. */
export function causeFromFlags(
  flags: readonly ResponseFlag[],
  transportFailure: string | undefined,
  code: number | undefined,
): Cause | undefined {
  if (flags.includes('UF')) return connectCause(transportFailure);
  if (flags.includes('UR')) return 'reset';
  // Envoy marks an attempt that its per-try timeout ended with UT; the global timeout marks only the downstream entry.
  if (flags.includes('UT') && code === undefined) return 'per_try_timeout';
  return byFlag.find(([flag]) => flags.includes(flag))?.[1];
}

/** A connect timeout has no reason in words, every other connect failure has (Envoy 1.40). test/fixtures/envoy-1.40. */
function connectCause(transportFailure: string | undefined): Cause {
  if (transportFailure === undefined) return 'connect_timeout';
  if (/tls|ssl|certificate/i.test(transportFailure)) return 'tls_failure';
  return 'connect_failure';
}

function causeFromEnd(exchange: Exchange): Cause {
  const { codeDetails = '', flags } = exchange;
  if (codeDetails.startsWith('upstream_per_try_timeout')) return 'per_try_timeout';
  if (flags.includes('UT') || codeDetails.includes('timeout')) return 'timeout';
  return causeFromFlags(flags, undefined, exchange.code) ?? 'unknown';
}
