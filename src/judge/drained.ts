import type { EndpointState, Holder, HolderState } from '../model/endpoint-report.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import type { PinUnknownReason } from '../model/verdict.ts';

/** What may be said of an endpoint that is to be shut down, the best first. */
export const drainStates = ['drained', 'may_be_open', 'blind', 'in_use', 'still_listed'] as const;
export type DrainState = (typeof drainStates)[number];

/** Why it cannot be known. docs/drained.md has what to do about each. */
export const blindReasons = [
  'no_reporter',
  'reporter_silent',
  'long_requests_not_flushed',
  'source_blind',
  'replica_unreachable',
  'answer_invalid',
  'replica_restarted',
  'truncated',
] as const;
export type BlindReason = (typeof blindReasons)[number];

/** One thing that hides the truth. */
export interface Blindness {
  reason: BlindReason;
  /** The reporter, replica or endpoint; `''` where there is none. */
  subject: string;
  /** More about it, in words; `''` where there is no more. */
  detail: string;
  /** It passes by itself then; absent: not by itself. */
  passesAtMs: number | undefined;
}

/** All times below are epoch ms on the clock of `nowMs`, those of replicas mapped to it. */
export interface DrainFacts {
  nowMs: number;
  /** How long nobody may have used the endpoint, ms. */
  quietForMs: number;
  /**
   * Node ids or pods that are known to be gone: neither their silence nor their connections count. Of one that is there
   * after all the connections do.
   */
  ignored: readonly string[];
  replicas: readonly ReplicaFacts[];
  /** What was asked for, over all replicas. */
  endpoints: readonly EndpointFacts[];
  /** A source asks the name in question: where there is no endpoint, none has left yet. */
  nameIsKnown: boolean;
  reporters: readonly ReporterFacts[];
  /** Times when nobody was looking, that are over. */
  gaps: readonly Gap[];
}

export interface ReplicaFacts {
  name: string;
  /** Why it gave no answer to judge by; absent: it did. */
  problem: { reason: 'replica_unreachable' | 'answer_invalid'; detail: string } | undefined;
  /** Absent only with a problem. */
  startedMs: number | undefined;
  truncated: boolean;
}

/** A connection that was seen at an endpoint, and where. */
export type HeldConnection = Holder & { cluster: string; endpoint: string };

export interface EndpointFacts {
  cluster: string;
  endpoint: string;
  state: EndpointState;
  reason: PinUnknownReason | undefined;
  /** Node ids of proxies whose own list has it, whatever its source says. */
  listedBy: readonly string[];
  /** The last failure of its source, in words. */
  sourceError: string | undefined;
  leftAtMs: number | undefined;
  /** Of one that left, the end of its grace: until then a proxy may go by an answer that lists it. */
  graceEndsMs: number | undefined;
  /** Absent: never, as far as remembered. */
  lastUsedMs: number | undefined;
  /** Until when connections may be open that a replica had no room to remember; infinite: without limit. Absent: none. */
  forgottenUntilMs: number | undefined;
  holders: readonly HeldConnection[];
  /** Connections beyond those in `holders`. */
  moreHolders: Record<HolderState, number>;
  /** Who used it after it left. */
  users: readonly Reporter[];
  /** Replicas (by name) that know by themselves whether and when it left. */
  knownTo: readonly string[];
}

export interface ReporterFacts {
  reporter: Reporter;
  profile: Profile;
  configVersion: number;
  /** It has a log stream to any replica now. */
  connected: boolean;
  lastEntryMs: number;
}

export interface Gap {
  reason: Extract<BlindReason, 'no_reporter' | 'reporter_silent' | 'replica_unreachable'>;
  subject: string;
  endedMs: number;
}

export interface DrainVerdict {
  state: DrainState;
  /** How long it is known that nobody used the endpoint, ms. Never more than is covered. */
  quietMs: number;
  /** What hides the truth, whatever the state. */
  blind: readonly Blindness[];
  /** Connections that can be open now. */
  holders: readonly HeldConnection[];
  /** Further ones, of which only the number is known. */
  moreHolders: number;
  /** When the last of them must be closed for want of use; infinite: never. Absent: there is none. */
  openUntilMs: number | undefined;
}

/** Envoy's own `idle_timeout`, of HTTP pools and of the TCP proxy: what is not known to be longer is closed by then. */
const idleTimeoutMs = 60 * 60_000;

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

/** Whether a reporter is meant by one of these node ids or pods. */
function isOneOf(ids: readonly string[], { nodeId, pod }: Pick<Reporter, 'nodeId' | 'pod'>): boolean {
  return ids.some((id) => id !== '' && (id === nodeId || id === pod));
}

/** By what a proxy is told from others. Its workload may be that of its inbound or of its outbound side. */
export function reporterKey({ nodeId, pod }: Pick<Reporter, 'nodeId' | 'pod'>): string {
  return `${nodeId}|${pod}`;
}

/** How a proxy is called in words: as `--ignore-reporter` takes it. */
export function reporterName({ nodeId, pod }: Reporter): string {
  return pod === '' ? nodeId : pod;
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

function blindness(facts: DrainFacts): Blindness[] {
  return [
    ...(facts.replicas.length === 0 ? [because('replica_unreachable', '', 'none was asked')] : []),
    ...facts.replicas.flatMap(ofReplica),
    ...ofReporters(facts),
    ...ofSources(facts),
    ...ofRestarts(facts),
    ...ofGaps(facts),
  ];
}

function because(reason: BlindReason, subject: string, detail = '', passesAtMs?: number): Blindness {
  return { reason, subject, detail, passesAtMs };
}

function ofReplica({ name, problem, truncated }: ReplicaFacts): Blindness[] {
  if (problem !== undefined) return [because(problem.reason, name, problem.detail)];
  return truncated ? [because('truncated', name)] : [];
}

function ofReporters(facts: DrainFacts): Blindness[] {
  const { nowMs, endpoints, replicas } = facts;
  // Who does not answer would know: that says enough.
  if (replicas.every(({ problem }) => problem !== undefined)) return [];
  const counts = ({ reporter }: { reporter: Reporter }) => !isOneOf(facts.ignored, reporter);
  const reporters = facts.reporters.filter(counts);
  const logging = facts.reporters.filter(({ profile }) => profile !== 'tag');
  const connected = new Set(
    reporters.filter((one) => one.connected && one.profile !== 'tag').map(({ reporter }) => reporterKey(reporter)),
  );
  const nobody = logging.length === 0 || (connected.size === 0 && logging.some(counts));
  const involved = endpoints.flatMap(({ users, holders }) => [...users, ...holders.map(({ reporter }) => reporter)]);
  const silent = new Map(
    involved
      .filter((reporter) => counts({ reporter }) && !connected.has(reporterKey(reporter)))
      .map((reporter) => [reporterKey(reporter), reporter]),
  );
  return [
    ...(nobody ? [because('no_reporter', '')] : []),
    ...Array.from(silent.values(), (reporter) => because('reporter_silent', reporterName(reporter))),
    ...reporters.filter((one) => hidesLongRequests(one, nowMs)).map(unflushed),
  ];
}

/** A request that such a proxy began an hour ago would be told at its end only: whether it uses the endpoint is not known. */
function hidesLongRequests({ profile, configVersion, connected, lastEntryMs }: ReporterFacts, nowMs: number): boolean {
  if (profile === 'tag') return nowMs - lastEntryMs < idleTimeoutMs;
  return connected && configVersion < 2;
}

function unflushed({ reporter, profile, configVersion }: ReporterFacts): Blindness {
  const detail = profile === 'tag' ? 'profile tag' : `config version ${configVersion}`;
  return because('long_requests_not_flushed', reporterName(reporter), detail);
}

function ofSources({ endpoints, nameIsKnown, replicas }: DrainFacts): Blindness[] {
  const nobodyKnows = endpoints.length === 0 && !nameIsKnown && replicas.some(({ problem }) => problem === undefined);
  if (nobodyKnows) return [because('source_blind', '', 'never listed and never used, as far as is known')];
  return endpoints
    .filter(({ state, reason }) => state === 'unknown' && (reason === undefined || !tellsWhatIsListed[reason]))
    .map(({ cluster, endpoint, reason, sourceError }) => {
      const detail = [reason, sourceError].filter((part) => part !== undefined).join(': ');
      return because('source_blind', `${cluster} ${endpoint}`, detail);
    });
}

/** Whether a source may still tell that the endpoint is not listed, though it cannot judge some connection by it. */
const tellsWhatIsListed: Record<PinUnknownReason, boolean> = {
  older_than_view: true,
  age_unknown: true,
  no_source: false,
  no_answer_yet: false,
  source_stale: false,
  no_address: false,
  other_resolver: false,
  owner_unclear: true,
};

/**
 * What flowed while a replica was away is lost. And one that began after the endpoint left, without a state file, does
 * not know of a connection that nobody has used since: it may be open for an idle timeout.
 */
function ofRestarts({ nowMs, quietForMs, replicas, endpoints }: DrainFacts): Blindness[] {
  return replicas.flatMap(({ name, startedMs, problem }) => {
    if (problem !== undefined || startedMs === undefined) return [];
    const missedIt = endpoints.some(
      ({ knownTo, leftAtMs }) => !knownTo.includes(name) && (leftAtMs === undefined || startedMs > leftAtMs),
    );
    const [afterMs, detail] = missedIt
      ? [Math.max(quietForMs, idleTimeoutMs), 'it began after the endpoint left']
      : [quietForMs, ''];
    const passesAtMs = startedMs + afterMs;
    return passesAtMs > nowMs ? [because('replica_restarted', name, detail, passesAtMs)] : [];
  });
}

function ofGaps({ nowMs, quietForMs, gaps }: DrainFacts): Blindness[] {
  return gaps
    .filter(({ endedMs }) => endedMs + quietForMs > nowMs)
    .map(({ reason, subject, endedMs }) => because(reason, subject, 'it was, until lately', endedMs + quietForMs));
}
