import { isSilentTunnel } from '../model/endpoint.ts';
import type { TcpConnection } from '../model/tcp-connection.ts';
import type { AttemptVerdict } from '../model/verdict.ts';
import { causeFromFlags } from './cause.ts';

/**
 * A proxied TCP connection at its end: nothing can retry here, so a failure is a failure. No peer and no flag: `ok`. So
 * is DT: its `max_downstream_connection_duration` is over, which is what ends a stale pin, and as planned.
 */
export function judgeTcpEnd(connection: TcpConnection): AttemptVerdict {
  const flags = connection.flags.filter((flag) => flag !== 'DT');
  const cause = causeFromFlags(flags, connection.transportFailure, undefined);
  if (cause !== undefined) return { result: 'failed', cause: isUntold(connection) ? 'unknown' : cause };
  if (isUntold(connection)) return { result: 'unknown', cause: undefined };
  const unanswered = connection.flags.some((flag) => flag === 'UH' || flag === 'NR' || flag === 'NC' || flag === 'URX');
  return unanswered ? { result: 'failed', cause: 'unknown' } : { result: 'ok', cause: undefined };
}

/**
 * As in HTTP, a connect that is refused behind a tunnel does not show: Envoy 1.40 calls it a reset by the server (UR), 1.37
 * and 1.38 an orderly end, like that of a client which had nothing to ask. test/istio/hbone.test.ts.
 */
function isUntold({ peer, bytesSent }: TcpConnection): boolean {
  return peer !== undefined && isSilentTunnel(peer, undefined) && bytesSent === 0;
}
