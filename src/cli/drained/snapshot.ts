import type { HeldConnection, ReporterFacts } from '../../judge/drain-facts.ts';
import { reporterKey } from '../../judge/drain-facts.ts';
import type { EndpointState, HolderState } from '../../model/endpoint-report.ts';
import type { Reporter } from '../../model/reporter.ts';
import type { PinUnknownReason } from '../../model/verdict.ts';
import type { SourceKind } from '../../model/view.ts';
import type { EndpointSeen, EndpointsSeen, HolderSeen, PinsSeen, ReportersSeen } from './answers.ts';

/** What one replica said of one endpoint, on the command's clock. */
export interface SeenEndpoint {
  cluster: string;
  endpoint: string;
  state: EndpointState;
  reason: PinUnknownReason | undefined;
  source: SourceKind | undefined;
  subject: string | undefined;
  listedBy: readonly string[];
  leftAtMs: number | undefined;
  graceEndsMs: number | undefined;
  lastUsedMs: number | undefined;
  /** Since it left. */
  requests: number;
  bytes: number;
  users: readonly Reporter[];
  /** Until when connections may be open of which nothing is remembered; infinite: without limit. Absent: none. */
  forgottenUntilMs: number | undefined;
  holders: readonly HeldConnection[];
  /** Connections that are counted, but not among `holders`. */
  moreHolders: Record<HolderState, number>;
}

/** What one replica said, on the command's clock. */
export interface Snapshot {
  startedMs: number;
  truncated: boolean;
  endpoints: readonly SeenEndpoint[];
  reporters: readonly ReporterFacts[];
  /** Who should report and does not to this replica; absent: it was not told who should. */
  expected: ReportersSeen['expected'];
}

/** A connection whose end a replica knows. */
export interface ClosedConnection {
  cluster: string;
  endpoint: string;
  connectionId: string;
  reporter: Pick<Reporter, 'nodeId' | 'pod'>;
  openedMs: number;
  closedMs: number;
}

/**
 * Maps what a replica said to the command's clock, by its own idea of now: its clock may be hours away. What the answer
 * took on its way makes everything seem later than it was, never earlier.
 */
export function snapshotOf(endpoints: EndpointsSeen, reporters: ReportersSeen, receivedMs: number): Snapshot {
  const mapped = mapping(endpoints.nowMs, receivedMs);
  const mappedReporter = mapping(reporters.nowMs, receivedMs);
  const linked = new Set(
    endpoints.endpoints
      .flatMap(({ holders }) => holders.filter(({ reporterConnected }) => reporterConnected))
      .map(({ reporter }) => reporterKey(reporter)),
  );
  return {
    startedMs: mapped(endpoints.startedMs),
    truncated: endpoints.truncated || reporters.truncated || reporters.expected?.truncated === true,
    expected: reporters.expected,
    endpoints: endpoints.endpoints.map((seen) => endpointOf(seen, mapped)),
    reporters: reporters.reporters.map(({ profile, configVersion, streams, lastEntryMs, ...reporter }) => ({
      reporter,
      profile,
      configVersion,
      connected: streams > 0 || linked.has(reporterKey(reporter)),
      lastEntryMs: mappedReporter(lastEntryMs),
    })),
  };
}

/** Those of which a replica knows that they are closed. */
export function closedOf({ nowMs, cleared }: PinsSeen, receivedMs: number): ClosedConnection[] {
  const mapped = mapping(nowMs, receivedMs);
  return cleared
    .filter(({ how }) => how === 'closed' || how === 'gone')
    .map(({ cluster, endpoint, connectionId, reporter, openedMs, clearedMs }) => ({
      cluster,
      endpoint,
      connectionId,
      reporter,
      openedMs: mapped(openedMs),
      closedMs: mapped(clearedMs),
    }));
}

type Mapped = (theirMs: number) => number;

function mapping(theirNowMs: number, receivedMs: number): Mapped {
  return (theirMs) => theirMs + receivedMs - theirNowMs;
}

function endpointOf(seen: EndpointSeen, mapped: Mapped): SeenEndpoint {
  const { cluster, endpoint, state, reason, source, subject, leftAtMs, graceMs = 0, connections, drain } = seen;
  const isListed = state === 'listed';
  const holders = isListed ? [] : seen.holders.map((holder) => holderOf(holder, { cluster, endpoint }, mapped));
  const more = (of: HolderState) =>
    isListed ? 0 : Math.max(0, connections[of] - holders.filter((holder) => holder.state === of).length);
  const uses = [seen.lastUsedMs, drain?.lastUsedMs].flatMap((time) => (time === undefined ? [] : mapped(time)));
  uses.push(...holders.map(({ lastUsedMs }) => lastUsedMs));
  return {
    cluster,
    endpoint,
    state,
    reason,
    source,
    subject,
    listedBy: seen.listedBy,
    leftAtMs: leftAtMs === undefined ? undefined : mapped(leftAtMs),
    graceEndsMs: leftAtMs === undefined ? undefined : mapped(leftAtMs) + graceMs,
    lastUsedMs: uses.length === 0 ? undefined : Math.max(...uses),
    requests: drain?.requests ?? 0,
    bytes: drain?.bytes ?? 0,
    users: drain?.reporters.map(({ reporter }) => reporter) ?? [],
    forgottenUntilMs:
      isListed || seen.forgotten === undefined
        ? undefined
        : mapped(seen.forgotten.mayBeOpenUntilMs ?? Number.POSITIVE_INFINITY),
    holders,
    moreHolders: { open: more('open'), idle: more('idle'), unseen: more('unseen') },
  };
}

function holderOf(seen: HolderSeen, where: { cluster: string; endpoint: string }, mapped: Mapped): HeldConnection {
  const { mayBeOpenUntilMs, reason, advice } = seen;
  return {
    ...seen,
    ...where,
    reason,
    advice,
    openedMs: mapped(seen.openedMs),
    lastUsedMs: mapped(seen.lastUsedMs),
    mayBeOpenUntilMs: mayBeOpenUntilMs === undefined ? undefined : mapped(mayBeOpenUntilMs),
  };
}

/** What remains of the word of a replica that is silent now: nobody can tell any more what is listed or open. */
export function remembered({ endpoints }: Snapshot): SeenEndpoint[] {
  return endpoints.map(({ holders, moreHolders: { open, idle, unseen }, ...endpoint }) => ({
    ...endpoint,
    state: 'unknown',
    reason: 'no_source',
    listedBy: [],
    holders: holders.map((holder) => ({ ...holder, state: 'unseen', reporterConnected: false })),
    moreHolders: { open: 0, idle: 0, unseen: open + idle + unseen },
  }));
}
