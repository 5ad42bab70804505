import { isSilentTunnel } from '../model/endpoint.ts';
import type { Attempt, Exchange, IncompleteReason } from '../model/exchange.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import { withoutMirrors } from './mirrors.ts';

/** All entries of one key on one stream, in any order, doubles already gone. */
export interface Parts {
  profile: Profile;
  reporter: Reporter;
  key: string;
  /** `downstream_end` entries: one, and one more for each internal redirect. */
  ends: readonly LogEntry[];
  /** `upstream_end` entries. */
  tries: readonly LogEntry[];
  /** Why the parts are not whole, where that is already known. */
  incomplete: IncompleteReason | undefined;
}

/** Envoy 1.40 writes two ends with one key for a followed redirect. test/e2e/flags.test.ts. */
export function isRedirect(end: LogEntry): boolean {
  return end.codeDetails === 'internal_redirect';
}

/** One exchange from its parts; the order of the parts does not matter. */
export function buildExchange(parts: Parts): Exchange {
  const ends = parts.ends.toSorted(byTime);
  const last = ends.findLast((end) => !isRedirect(end));
  const first = ends[0];
  const tries = withoutMirrors(parts.tries, ends, parts.reporter.envoyVersion).toSorted(byTime);
  const attempts = tries
    .flatMap((entry) => toAttempt(entry))
    .map((attempt, index) => ({ ...attempt, number: index + 1 }));
  const startMs = first?.startMs ?? attempts[0]?.startMs ?? 0;
  const described = last ?? tries[0];
  const tags = described?.tags;
  const delivered = last === undefined ? undefined : deliveredBy(last, attempts);
  return {
    profile: parts.profile,
    reporter: parts.reporter,
    key: parts.key,
    cluster: last?.cluster ?? attempts.at(-1)?.cluster,
    route: described?.route,
    startMs,
    durationMs: last === undefined ? undefined : spanOf(last, startMs),
    method: described?.method,
    scheme: described?.scheme,
    authority: first?.authority ?? described?.authority,
    path: first?.path ?? described?.path,
    protocol: described?.protocol,
    requestId: described?.requestId,
    isGrpc: tags?.isGrpc === true,
    code: last?.code,
    codeDetails: last?.codeDetails,
    grpcStatus: grpcStatusOf(tags?.grpcStatus, delivered === undefined ? undefined : attempts[delivered]),
    flags: last?.flags ?? [],
    attempts,
    delivered,
    attemptCount: countOf(ends),
    attemptCountMismatch: disagrees(ends, tries),
    redirects: ends.filter(isRedirect).length,
    bytesSent: last?.bytesSent ?? 0,
    bytesReceived: last?.bytesReceived ?? 0,
    incomplete: parts.incomplete ?? missing(ends, tries),
    traceparent: tags?.traceparent,
    envoyTraceId: tags?.envoyTraceId,
    envoySpanId: tags?.envoySpanId,
    injected: tags?.injected,
  };
}

/** A total order, so that any arrival order gives the same numbering. */
function byTime(a: LogEntry, b: LogEntry): number {
  return (
    (a.startMs ?? 0) - (b.startMs ?? 0) ||
    (a.durationMs ?? 0) - (b.durationMs ?? 0) ||
    compareText(fingerprint(a), fingerprint(b))
  );
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Whether an entry came twice. */
export function isSame(a: LogEntry, b: LogEntry): boolean {
  return a.startMs === b.startMs && a.durationMs === b.durationMs && fingerprint(a) === fingerprint(b);
}

function fingerprint(entry: LogEntry): string {
  return [
    entry.type,
    entry.upstream?.text,
    entry.tags.connectionId,
    entry.code,
    entry.codeDetails,
    entry.flags.join(),
  ].join('|');
}

/** Envoy 1.40 names a host that the `max_requests` breaker kept it from, so UO without a connection reached nobody. */
export function reachedPeer(entry: LogEntry): boolean {
  return entry.upstream !== undefined && !(entry.flags.includes('UO') && entry.tags.connectionId === undefined);
}

function toAttempt(entry: LogEntry): Attempt[] {
  if (entry.upstream === undefined || entry.startMs === undefined || !reachedPeer(entry)) return [];
  const isSilent = isSilentTunnel(entry.upstream, entry.code);
  return [
    {
      number: 0,
      startMs: entry.startMs,
      durationMs: entry.durationMs,
      firstUpstreamTxMs: entry.firstUpstreamTxMs,
      firstUpstreamRxMs: entry.firstUpstreamRxMs,
      peer: entry.upstream,
      cluster: entry.cluster,
      flags: entry.flags,
      code: entry.code,
      grpcStatus: entry.tags.grpcStatus,
      transportFailure: entry.transportFailure,
      connectionId: isSilent ? undefined : entry.tags.connectionId,
      connectionAgeMs: isSilent ? undefined : entry.tags.connectionAgeMs,
      bytesSent: entry.bytesSent,
      bytesReceived: entry.bytesReceived,
    },
  ];
}

function spanOf(last: LogEntry, startMs: number): number | undefined {
  if (last.durationMs === undefined || last.startMs === undefined) return undefined;
  return last.startMs + last.durationMs - startMs;
}

/** Details under which a response that an attempt had begun was cut on its way; under others than these and `via_upstream` the reply is Envoy's own. */
const cutShort =
  /^(?:upstream_reset_after_response_started|downstream_|http[123]\.|response_timeout|stream_idle_timeout|max_duration_timeout)/;

/**
 * The downstream entry names the peer and the connection of the last attempt, also where the reply is Envoy's own, so
 * only the details tell. A cut response is the last attempt's; Envoy's own reply has a code that this attempt has not.
 */
function deliveredBy(end: LogEntry, attempts: readonly Attempt[]): number | undefined {
  if (end.code === undefined) return undefined;
  if (cutShort.test(end.codeDetails ?? '')) {
    return attempts.at(-1)?.code === end.code ? attempts.length - 1 : undefined;
  }
  if (end.codeDetails !== undefined && end.codeDetails !== 'via_upstream') return undefined;
  const onPeer = (attempt: Attempt) => attempt.code === end.code && attempt.peer.text === end.upstream?.text;
  const exact = attempts.findLastIndex((attempt) => onPeer(attempt) && attempt.connectionId === end.tags.connectionId);
  const index = exact >= 0 ? exact : attempts.findLastIndex(onPeer);
  return index >= 0 ? index : undefined;
}

/** UNKNOWN: what Envoy makes up where it saw no status. */
const madeUp = 2;

/**
 * Envoy's gRPC-Web filter turns the upstream's trailers into a piece of the body, so that the end has no status; its
 * attempt has it. Envoy 1.40, test/e2e/flags.test.ts.
 */
function grpcStatusOf(atEnd: number | undefined, delivered: Attempt | undefined): number | undefined {
  return atEnd === undefined || atEnd === madeUp ? (delivered?.grpcStatus ?? atEnd) : atEnd;
}

function countOf(ends: readonly LogEntry[]): number | undefined {
  const counts = ends.flatMap((end) => end.attemptCount ?? []);
  return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0);
}

/**
 * Envoy counts a try that found no host (503, ejected, then UH: count 2, one entry), so one entry less is
 * explained by UH or NC at the end. Envoy 1.40, test/e2e/flags.test.ts.
 */
function missing(ends: readonly LogEntry[], tries: readonly LogEntry[]): IncompleteReason | undefined {
  const count = countOf(ends);
  return count !== undefined && tries.length + hostless(ends) < count ? 'attempts_missing' : undefined;
}

/** Of Envoy's count, the tries that no entry stands for. */
export function hostless(ends: readonly LogEntry[]): number {
  return ends.filter((end) => end.flags.some((flag) => flag === 'UH' || flag === 'NC')).length;
}

/** The attempt header begins anew with each leg of a redirect, so it is compared only without one. */
function disagrees(ends: readonly LogEntry[], tries: readonly LogEntry[]): boolean {
  const counted = tries.length + hostless(ends);
  const header = ends.length === 1 ? ends[0]?.tags.attemptCountHeader : undefined;
  const told = [countOf(ends), header];
  return told.some((count) => count !== undefined && count !== counted);
}
