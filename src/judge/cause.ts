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

/** Why a failed attempt failed, from its own facts, else (no flag, no code) from the exchange's end. */
export function causeOf(attempt: Attempt, exchange: Exchange): Cause {
  const own = causeFromFlags(attempt.flags, attempt.transportFailure, attempt.code);
  if (own !== undefined) return own;
  if (attempt.code !== undefined) return causeFromStatus(attempt, exchange);
  return causeFromEnd(exchange);
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

/** Envoy's words for it, with `_` for spaces in a log. test/fixtures/envoy-1.40. */
function connectCause(transportFailure: string | undefined): Cause {
  const words = (transportFailure ?? '').toLowerCase().replaceAll('_', ' ');
  if (/tls|certificate|ssl|alert/.test(words)) return 'tls_failure';
  if (/time(?:d )?out/.test(words)) return 'connect_timeout';
  return 'connect_failure';
}

function causeFromStatus(attempt: Attempt, exchange: Exchange): Cause {
  if (attempt.code !== undefined && attempt.code >= 500) return 'status_5xx';
  if (exchange.isGrpc && attempt.grpcStatus !== 0) return 'grpc_status';
  return 'retriable_status';
}

function causeFromEnd(exchange: Exchange): Cause {
  const { codeDetails = '', flags } = exchange;
  if (codeDetails.startsWith('upstream_per_try_timeout')) return 'per_try_timeout';
  if (flags.includes('UT') || codeDetails.startsWith('response_timeout')) return 'timeout';
  if (codeDetails.includes('refused_stream')) return 'refused_stream';
  return causeFromFlags(flags, undefined, exchange.code) ?? 'unknown';
}
