import type { Reporter } from '../model/reporter.ts';
import { blindness } from './drain-blindness.ts';
import {
  type DrainFacts,
  type DrainState,
  type DrainVerdict,
  type EndpointFacts,
  type HeldConnection,
  isOneOf,
  reporterKey,
} from './drain-facts.ts';

/**
 * Whether an endpoint is drained. Total: whatever the facts, there is a verdict. First match wins:
 *
 * | when | state |
 * |---|---|
 * | an endpoint is listed, by its source or by a proxy itself, or the name is known and none of its endpoints has left | `still_listed` |
 * | used, or left, less than the quiet time ago, or inside its grace, or a connection is known to be open | `in_use` |
 * | something hides the truth: see `blindReasons` | `blind` |
 * | an idle, unseen or forgotten connection has not outlived its idle timeout | `may_be_open` |
 * | otherwise | `drained` |
 *
 * The states are ordered: one more connection or problem leaves it as it is or makes it worse.
 */
export function judgeDrained(facts: DrainFacts): DrainVerdict {
  const { nowMs, endpoints } = facts;
  const isGone = goneReporters(facts);
  const held = endpoints.flatMap(({ holders }) => holders).filter(({ reporter }) => !isGone(reporter));
  const holders = held.filter((holder) => canBeOpen(holder, nowMs));
  const more = { open: 0, idle: 0, unseen: 0 };
  for (const { moreHolders } of endpoints)
    for (const state of ['open', 'idle', 'unseen'] as const) more[state] += moreHolders[state];
  const moreHolders = more.open + more.idle + more.unseen;
  const forgotten = endpoints.flatMap(({ forgottenUntilMs }) => forgottenUntilMs ?? []).filter((ms) => ms > nowMs);
  const untils = [...holders.map(openUntil), ...forgotten];
  if (moreHolders > 0) untils.push(Number.POSITIVE_INFINITY);
  const blind = blindness(facts);
  const isOpen = more.open > 0 || holders.some(({ state }) => state === 'open');
  return {
    state: stateOf(facts, { isOpen, isBlind: blind.length > 0, mayBeOpen: untils.length > 0 }),
    quietMs: quiet(facts),
    blind,
    holders,
    moreHolders,
    openUntilMs: untils.length === 0 ? undefined : Math.max(...untils),
  };
}

/** Who is said to be gone, and is: a proxy that has a log stream open is not, and its connections count. */
function goneReporters({ ignored, reporters }: DrainFacts): (reporter: Pick<Reporter, 'nodeId' | 'pod'>) => boolean {
  const open = reporters.filter(({ connected, profile }) => connected && profile !== 'tag');
  const connected = new Set(open.map(({ reporter }) => reporterKey(reporter)));
  return (reporter) => isOneOf(ignored, reporter) && !connected.has(reporterKey(reporter));
}

function stateOf(
  facts: DrainFacts,
  { isOpen, isBlind, mayBeOpen }: { isOpen: boolean; isBlind: boolean; mayBeOpen: boolean },
): DrainState {
  const { endpoints, nameIsKnown, nowMs, quietForMs, ignored, reporters } = facts;
  const isConnected = (nodeId: string) => reporters.some((one) => one.connected && one.reporter.nodeId === nodeId);
  const noneLeft = endpoints.length === 0 && nameIsKnown;
  const isListed = ({ state, listedBy }: EndpointFacts) =>
    state === 'listed' || listedBy.some((nodeId) => isConnected(nodeId) || !isOneOf(ignored, { nodeId, pod: '' }));
  if (noneLeft || endpoints.some(isListed)) return 'still_listed';
  const isUsed = (endpoint: EndpointFacts) =>
    nowMs - unusedSince(endpoint) < quietForMs || nowMs < (endpoint.graceEndsMs ?? nowMs);
  if (isOpen || endpoints.some(isUsed)) return 'in_use';
  if (isBlind) return 'blind';
  return mayBeOpen ? 'may_be_open' : 'drained';
}

/** Before it left, everybody was free to use it. Infinite: neither is known. */
function unusedSince({ leftAtMs, lastUsedMs }: EndpointFacts): number {
  return Math.max(leftAtMs ?? Number.NEGATIVE_INFINITY, lastUsedMs ?? Number.NEGATIVE_INFINITY);
}

function quiet({ nowMs, endpoints, replicas, gaps }: DrainFacts): number {
  const starts = replicas.flatMap(({ startedMs }) => startedMs ?? []);
  if (starts.length === 0) return 0;
  const coveredSince = Math.max(...starts, ...gaps.map(({ endedMs }) => endedMs));
  return Math.max(0, nowMs - Math.max(coveredSince, ...endpoints.map(unusedSince)));
}

function canBeOpen(holder: HeldConnection, nowMs: number): boolean {
  return holder.state === 'open' || openUntil(holder) > nowMs;
}

function openUntil({ mayBeOpenUntilMs }: HeldConnection): number {
  return mayBeOpenUntilMs ?? Number.POSITIVE_INFINITY;
}
