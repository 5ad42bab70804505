import { ipWithPort } from '../lib/ip.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { Pin, PinUnknownReason, PinVerdict } from '../model/verdict.ts';
import { type ClusterView, type EarlierOwner, isStale } from '../model/view.ts';

/** What is known of one request or connection. All times are epoch ms on our clock: the caller adds Envoy's offset. */
export interface PinFacts {
  /** `undefined`: no source covers the cluster. */
  view: ClusterView | undefined;
  endpoint: Endpoint;
  /** When the upstream connection was established; `undefined`: Envoy did not say how old it is. */
  connectionOpenedMs: number | undefined;
  /** When the request began; `undefined` for a TCP connection, which is judged as of `nowMs`. */
  requestStartMs: number | undefined;
  /** As of when the judgement holds. */
  nowMs: number;
  /** How far the mapped times may be off, either way, ms. */
  clockUncertaintyMs: number;
}

/** The pin of a request or connection. Total: whatever the facts, there is a verdict. The order is design.md's table. */
export function judgePin(facts: PinFacts): PinVerdict {
  const { view, endpoint, nowMs } = facts;
  const place = locate(view, endpoint, nowMs);
  if (place.state === 'unknown') return unknown(view, place.reason);
  const owner = earlierOwner(facts, earlierOf(place.view, endpoint));
  if (typeof owner === 'string') return unknown(view, owner);
  if (owner !== undefined) return judgeLeft(facts, place.view, owner);
  if (place.state === 'listed') return verdict(place.view, 'current', undefined);
  if (place.state === 'left') return judgeLeft(facts, place.view, place);
  return judgeNeverListed(facts, place.view, place.view.firstAnswerMs ?? nowMs);
}

/** Where an endpoint stands in a view. */
export type Place =
  | { state: 'unknown'; reason: PinUnknownReason }
  | { state: 'listed'; view: ClusterView }
  /** `graceFromMs`: from when the grace runs; infinite while it is told to end and still there. */
  | { state: 'left'; view: ClusterView; leftAtMs: number; graceFromMs: number }
  | { state: 'unlisted'; view: ClusterView };

/** Whether an endpoint is listed, left, or was never listed, as of a moment; or why that is not known. */
export function locate(view: ClusterView | undefined, endpoint: Pick<Endpoint, 'ip' | 'port'>, nowMs: number): Place {
  if (view === undefined) return { state: 'unknown', reason: 'no_source' };
  const reason = endpoint.ip === undefined ? 'no_address' : blindness(view, nowMs);
  if (reason !== undefined) return { state: 'unknown', reason };
  if (isIn(view.listed, endpoint)) return { state: 'listed', view };
  const ending = view.terminating && entryOf(view.terminating, endpoint);
  const leftAtMs = latestOf(view.left, endpoint);
  if (leftAtMs === undefined) return { state: 'unlisted', view };
  const graceFromMs = ending === undefined ? leftAtMs : Math.max(leftAtMs, ending.goneMs ?? Number.POSITIVE_INFINITY);
  return { state: 'left', view, leftAtMs, graceFromMs };
}

/** Whose address it was when the connection was opened; `undefined`: of the one that has it now, or had it last. */
function earlierOwner(
  { endpoint, connectionOpenedMs, clockUncertaintyMs, nowMs }: PinFacts,
  owners: readonly EarlierOwner[],
): EarlierOwner | Extract<PinUnknownReason, 'age_unknown' | 'tunnelled' | 'owner_unclear'> | undefined {
  for (const owner of owners) {
    // What ended before it left was on it, or on one before it.
    if (nowMs <= owner.leftAtMs) return owner;
    if (connectionOpenedMs === undefined) return untoldAge(endpoint);
    if (connectionOpenedMs + clockUncertaintyMs < owner.nextFromMs) return owner;
    if (connectionOpenedMs - clockUncertaintyMs <= owner.nextByMs) return 'owner_unclear';
  }
  return undefined;
}

function earlierOf({ earlier }: ClusterView, endpoint: Endpoint): readonly EarlierOwner[] {
  return (earlier && entryOf(earlier, endpoint)) ?? [];
}

/** Since when an endpoint is listed, epoch ms; `undefined`: it is not. */
export function listedSinceMs({ listed }: ClusterView, endpoint: Pick<Endpoint, 'ip' | 'port'>): number | undefined {
  return latestOf(listed, endpoint);
}

/** Why a view can judge nothing; `undefined`: it can. */
export function blindness(view: ClusterView, nowMs: number): PinUnknownReason | undefined {
  if (!view.sameAsProxy) return 'other_resolver';
  if (view.firstAnswerMs === undefined || view.lastAnswerMs === undefined) return 'no_answer_yet';
  return isStale(view, nowMs) ? 'source_stale' : undefined;
}

function judgeNeverListed(facts: PinFacts, view: ClusterView, firstAnswerMs: number): PinVerdict {
  const { endpoint, connectionOpenedMs, clockUncertaintyMs } = facts;
  // A tunnel may lead to another proxy, under the address of a service: what that one chose is not told.
  if (endpoint.kind === 'internal') return unknown(view, 'tunnelled');
  if (connectionOpenedMs === undefined) return unknown(view, 'age_unknown');
  const mayBeOlder = connectionOpenedMs - clockUncertaintyMs < firstAnswerMs;
  return mayBeOlder ? unknown(view, 'older_than_view') : verdict(view, 'unlisted', undefined);
}

function judgeLeft(
  facts: PinFacts,
  view: ClusterView,
  { leftAtMs, graceFromMs }: { leftAtMs: number; graceFromMs: number },
): PinVerdict {
  const { endpoint, nowMs, requestStartMs = nowMs, connectionOpenedMs, clockUncertaintyMs } = facts;
  // The recorder judges a request after its end: what left since then was listed when it was used.
  if (nowMs <= leftAtMs) return verdict(view, 'current', undefined);
  // A request that began inside the grace was free to use the endpoint, however long it runs.
  const usedAtMs = Math.min(nowMs, requestStartMs) - clockUncertaintyMs;
  if (usedAtMs <= graceFromMs || usedAtMs - graceFromMs < view.graceMs) return verdict(view, 'draining', leftAtMs);
  if (connectionOpenedMs === undefined) return unknown(view, untoldAge(endpoint));
  // Inside the grace a proxy may open connections by an answer that still holds: its list is old only after that.
  const oldListFromMs = graceFromMs + view.graceMs;
  if (clockUncertaintyMs > 0 && Math.abs(connectionOpenedMs - oldListFromMs) <= clockUncertaintyMs)
    return verdict(view, 'draining', leftAtMs);
  return verdict(view, connectionOpenedMs < oldListFromMs ? 'stale' : 'stale_view', leftAtMs);
}

/** Why it is not known how old a connection is. */
function untoldAge({ kind }: Endpoint): 'tunnelled' | 'age_unknown' {
  return kind === 'internal' ? 'tunnelled' : 'age_unknown';
}

/**
 * Whether an endpoint is there, however the source spells it: without its port or with it. None of a pipe is. Of an
 * Envoy-internal address the inner one counts.
 */
function isIn(times: ReadonlyMap<string, number>, { ip, port }: Pick<Endpoint, 'ip' | 'port'>): boolean {
  if (ip === undefined) return false;
  return times.has(ip) || (port !== undefined && times.has(ipWithPort(ip, port)));
}

/** What is told of an address, with its port or of all its ports. */
function entryOf<T>(entries: ReadonlyMap<string, T>, { ip, port }: Pick<Endpoint, 'ip' | 'port'>): T | undefined {
  if (ip === undefined) return undefined;
  return entries.get(ip) ?? (port === undefined ? undefined : entries.get(ipWithPort(ip, port)));
}

function latestOf(times: ReadonlyMap<string, number>, { ip, port }: Pick<Endpoint, 'ip' | 'port'>): number | undefined {
  if (ip === undefined) return undefined;
  const ofAll = times.get(ip);
  const ofPort = port === undefined ? undefined : times.get(ipWithPort(ip, port));
  return ofAll === undefined || ofPort === undefined ? (ofAll ?? ofPort) : Math.max(ofAll, ofPort);
}

function verdict(view: ClusterView, pin: Pin, leftAtMs: number | undefined): PinVerdict {
  return { pin, reason: undefined, leftAtMs, source: view.source };
}

function unknown(view: ClusterView | undefined, reason: PinUnknownReason): PinVerdict {
  return { pin: 'unknown', reason, leftAtMs: undefined, source: view?.source };
}
