import type { Endpoint } from './endpoint.ts';
import type { InjectedContext } from './log-entry.ts';
import type { Profile, Reporter } from './reporter.ts';
import type { ResponseFlag } from './response-flag.ts';

/** Why the facts of an exchange are not whole. */
export const incompleteReasons = [
  /** No downstream end within the longest wait. */
  'end_not_seen',
  /** Pushed out because the table was full. */
  'evicted',
  /** The log stream ended first. */
  'stream_ended',
  /** Envoy counted more attempts than entries came. */
  'attempts_missing',
  /** The `tag` profile sees neither failed attempts nor the response's end. */
  'profile_tag',
] as const;
export type IncompleteReason = (typeof incompleteReasons)[number];

/** One try at an upstream that reached a peer (a refused connect included: Envoy names the peer that it tried). */
export interface Attempt {
  /** 1-based, by start. */
  number: number;
  startMs: number;
  /** Absent where Envoy gave no duration. */
  durationMs: number | undefined;
  firstUpstreamTxMs: number | undefined;
  firstUpstreamRxMs: number | undefined;
  peer: Endpoint;
  cluster: string | undefined;
  flags: readonly ResponseFlag[];
  code: number | undefined;
  grpcStatus: number | undefined;
  transportFailure: string | undefined;
  connectionId: string | undefined;
  connectionAgeMs: number | undefined;
  bytesSent: number;
  bytesReceived: number;
}

/** One request and all that a proxy did for it. Built by `assemble`, read by `judge` and `emit`, never changed. */
export interface Exchange {
  profile: Profile;
  reporter: Reporter;
  key: string;
  /** `undefined`: no attempt had a cluster (no route, a local reply). */
  cluster: string | undefined;
  route: string | undefined;
  startMs: number;
  durationMs: number | undefined;
  method: string | undefined;
  scheme: string | undefined;
  authority: string | undefined;
  path: string | undefined;
  protocol: string | undefined;
  requestId: string | undefined;
  isGrpc: boolean;
  /** As the client saw it; absent where no head was sent. */
  code: number | undefined;
  codeDetails: string | undefined;
  grpcStatus: number | undefined;
  flags: readonly ResponseFlag[];
  /** By start. Mirrors and tries without a peer are not here. */
  attempts: readonly Attempt[];
  /** Index in `attempts` of the one whose response was delivered; absent where none was. */
  delivered: number | undefined;
  /** Envoy's own count over all legs; absent where it did not say. */
  attemptCount: number | undefined;
  /** Envoy's count, or the attempt header, says otherwise than the entries. The entries decide. */
  attemptCountMismatch: boolean;
  /** Internal redirects that were followed. */
  redirects: number;
  bytesSent: number;
  bytesReceived: number;
  incomplete: IncompleteReason | undefined;
  /** Upstream connection of the delivered response in the `tag` profile, where attempts are not seen. */
  traceparent: string | undefined;
  envoyTraceId: string | undefined;
  envoySpanId: string | undefined;
  injected: InjectedContext | undefined;
}

/**
 * Whether any byte of the request was sent on an attempt. Envoy 1.37 and 1.40 give no time of it exactly where there
 * was no connection (test/unit/recordings.test.ts). Absent for an internal listener, which takes it before the real
 * connection is made.
 */
export function wasSent({ peer, firstUpstreamTxMs }: Attempt): boolean | undefined {
  return peer.kind === 'internal' ? undefined : firstUpstreamTxMs !== undefined;
}

/** The attempt that an exchange's pin and connection are about: the delivered one, else the last. */
export function judgedAttempt({ attempts, delivered }: Exchange): Attempt | undefined {
  return delivered === undefined ? attempts.at(-1) : attempts[delivered];
}
