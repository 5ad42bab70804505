import type { DecodeError } from '../decode/limits.ts';

/** The two APIs that Envoy calls. */
export type StreamKind = 'access_log' | 'ext_proc';

/** Why a stream, a message or a part of one was not taken. */
export type RefusedReason =
  /** A bound on one message was passed. */
  | Exclude<DecodeError['reason'], 'malformed'>
  /** As many streams of this kind as allowed are open. */
  | 'too_many_streams'
  /** A log stream that does not begin with who logs. */
  | 'no_identifier'
  /** The log's name, or `x-sidelight-profile`, names no profile. */
  | 'unknown_profile';

/** Told of everything that the self-metrics count. Must not throw and must be quick. */
export interface IngressCounters {
  streamOpened(kind: StreamKind): void;
  streamClosed(kind: StreamKind): void;
  message(kind: StreamKind): void;
  /** Bytes that are no message of this API. */
  decodeError(kind: StreamKind, error: DecodeError): void;
  /** `count`: log entries for `tagsPerEntry`, else 1. */
  refused(kind: StreamKind, reason: RefusedReason, count: number): void;
  /** An ext_proc stream or message without what tagging needs: it could not be taken, or there is no profile. */
  failOpen(): void;
  /** An ext_proc message was decoded and answered (in observability mode: would have been), so many ms after it came. */
  answered(durationMs: number): void;
  /** Something that should not happen. The stream goes on, on ext_proc with an answer that changes nothing. */
  internalError(kind: StreamKind, error: unknown): void;
}
