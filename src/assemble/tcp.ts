import type { LogEntry } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import type { TcpConnection } from '../model/tcp-connection.ts';

/**
 * A TCP entry as the state of its connection; `undefined` for an entry that cannot be placed in time. Each entry
 * says all that is known so far (byte counts since the beginning), so nothing needs joining.
 */
export function tcpConnection(
  stream: { profile: Profile },
  entry: LogEntry,
  reporter: Reporter,
): TcpConnection | undefined {
  if (entry.startMs === undefined) return undefined;
  return {
    profile: stream.profile,
    reporter,
    key: entry.key ?? '',
    phase: entry.type === 'tcp_connection_end' ? 'ended' : 'open',
    cluster: entry.cluster,
    peer: entry.upstream,
    connectionId: entry.tags.connectionId,
    startMs: entry.startMs,
    durationMs: entry.durationMs,
    bytesSent: entry.bytesSent,
    bytesReceived: entry.bytesReceived,
    flags: entry.flags,
    transportFailure: entry.transportFailure,
  };
}
