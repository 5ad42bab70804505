import type { TcpConnection } from '../model/tcp-connection.ts';
import type { AttemptVerdict } from '../model/verdict.ts';
import { causeFromFlags } from './cause.ts';

/** A proxied TCP connection at its end: nothing can retry here, so a failure is a failure. No peer and no flag: `ok`. */
export function judgeTcpEnd(connection: TcpConnection): AttemptVerdict {
  const cause = causeFromFlags(connection.flags, connection.transportFailure, undefined);
  if (cause !== undefined) return { result: 'failed', cause };
  const unanswered = connection.flags.some((flag) => flag === 'UH' || flag === 'NR' || flag === 'NC' || flag === 'URX');
  return unanswered ? { result: 'failed', cause: 'unknown' } : { result: 'ok', cause: undefined };
}
