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
  const unanswered = connection.flags.some((flag) => flag === 'UH' || flag === 'NR' || flag === 'NC' || flag === 'URX');
  return unanswered ? { result: 'failed', cause: 'unknown' } : { result: 'ok', cause: undefined };
}

/** As in HTTP: a refused connect behind a tunnel shows as a reset (UR) by the server. Envoy 1.40, test/istio/hbone.test.ts. */
function isUntold({ peer, bytesSent }: TcpConnection): boolean {
  return peer !== undefined && isSilentTunnel(peer, undefined) && bytesSent === 0;
}
