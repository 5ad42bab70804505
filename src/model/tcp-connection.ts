import type { Endpoint } from './endpoint.ts';
import type { Profile, Reporter } from './reporter.ts';
import type { ResponseFlag } from './response-flag.ts';

/** One TCP-proxied connection as a log stream reports it: connected, periodically, and at its end. */
export interface TcpConnection {
  profile: Profile;
  reporter: Reporter;
  key: string;
  phase: 'open' | 'ended';
  cluster: string | undefined;
  peer: Endpoint | undefined;
  connectionId: string | undefined;
  startMs: number;
  /** The age so far; absent where Envoy did not say. */
  durationMs: number | undefined;
  /** To and from the client, since the connection began. */
  bytesSent: number;
  bytesReceived: number;
  flags: readonly ResponseFlag[];
  transportFailure: string | undefined;
}
