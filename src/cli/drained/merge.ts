import type { DrainFacts, EndpointFacts, ReporterFacts } from '../../judge/drain-facts.ts';
import { reporterKey } from '../../judge/drain-facts.ts';
import { parseHostPort } from '../../lib/host-port.ts';
import { canonicalIp } from '../../lib/ip.ts';
import type { EndpointState } from '../../model/endpoint-report.ts';
import { podKey } from '../../model/expected-reporter.ts';
import { mergeHolders } from './merge-holders.ts';
import type { ClosedConnection, SeenEndpoint, Snapshot } from './snapshot.ts';

/** What one replica said of one endpoint; `replica`: its name, absent where it is only remembered. */
export interface Told {
  replica: string | undefined;
  seen: SeenEndpoint;
}

/** An endpoint over all replicas, with what is only shown. */
export interface MergedEndpoint extends EndpointFacts, SeenEndpoint {
  holders: SeenEndpoint['holders'];
}

/** Every endpoint of the answers, once. */
export function mergeEndpoints(told: readonly Told[], closed: readonly ClosedConnection[] = []): MergedEndpoint[] {
  const groups = new Map<string, Told[]>();
  for (const one of told) {
    const key = `${one.seen.cluster}\n${one.seen.endpoint}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  // A source may name the address alone: its word is about all of the address's ports.
  const isBare = (one: Told) => portOf(one.seen.endpoint) === undefined;
  const bare = told.filter(isBare);
  const withPort = told.filter((one) => !isBare(one));
  const isSameAddress = (a: Told, b: Told) =>
    a.seen.cluster === b.seen.cluster && ipOf(a.seen.endpoint) === ipOf(b.seen.endpoint);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    if (isBare(first)) return withPort.some((other) => isSameAddress(first, other)) ? [] : [mergeGroup(group, closed)];
    return [mergeGroup([...group, ...bare.filter((other) => isSameAddress(first, other))], closed)];
  });
}

/**
 * Of a name: the endpoints that left somewhere, in every cluster that knows them. One that is listed everywhere is not
 * meant, unless none has left yet.
 */
export function endpointsThatLeft(endpoints: readonly MergedEndpoint[]): readonly MergedEndpoint[] {
  const left = new Set(endpoints.filter(({ state }) => state !== 'listed').map(({ endpoint }) => ipOf(endpoint)));
  return left.size === 0 ? endpoints : endpoints.filter(({ endpoint }) => left.has(ipOf(endpoint)));
}

/** Every proxy of the answers, once. */
export function mergeReporters(told: readonly ReporterFacts[]): ReporterFacts[] {
  const merged = new Map<string, ReporterFacts>();
  for (const one of told) {
    const key = `${reporterKey(one.reporter)}|${one.profile}`;
    const other = merged.get(key);
    merged.set(key, other === undefined ? one : mergeTwo(other, one));
  }
  return [...merged.values()];
}

/** Who should report, by any replica, and does so to none; `undefined`: no replica was told who should. */
export function mergeExpected(
  snapshots: readonly Pick<Snapshot, 'expected'>[],
  reporters: readonly ReporterFacts[],
): DrainFacts['expected'] {
  const told = snapshots.flatMap(({ expected }) => expected ?? []);
  if (told.length === 0) return undefined;
  const missing = new Map(told.flatMap((one) => one.missing).map((one) => [podKey(one), one]));
  for (const { connected, reporter } of reporters) if (connected) missing.delete(podKey(reporter));
  const blind = told.find(({ stale }) => stale);
  return {
    missing: [...missing.values()],
    unknown: blind && { subject: blind.subject, error: blind.lastError ?? '' },
  };
}

function mergeTwo(a: ReporterFacts, b: ReporterFacts): ReporterFacts {
  // Whoever has its stream knows its config; the other may remember an older one.
  const configVersion =
    a.connected === b.connected ? Math.min(a.configVersion, b.configVersion) : (a.connected ? a : b).configVersion;
  const connected = a.connected || b.connected;
  return { ...a, configVersion, connected, lastEntryMs: Math.max(a.lastEntryMs, b.lastEntryMs) };
}

function mergeGroup(group: readonly Told[], closed: readonly ClosedConnection[]): MergedEndpoint {
  const rows = group.map(({ seen }) => seen);
  const exact = rows.find(({ endpoint }) => portOf(endpoint) !== undefined) ?? rows[0];
  const current = group.filter(({ replica }) => replica !== undefined).map(({ seen }) => seen);
  const state = stateOf(current);
  const speaker = current.find((row) => row.state === state);
  const sum = (value: (row: SeenEndpoint) => number) => rows.reduce((total, row) => total + value(row), 0);
  return {
    cluster: exact?.cluster ?? '',
    endpoint: exact?.endpoint ?? '',
    state,
    reason: speaker === undefined ? 'no_source' : speaker.reason,
    sourceError: undefined,
    source: speaker?.source,
    subject: speaker?.subject,
    listedBy: [...new Set(rows.flatMap(({ listedBy }) => listedBy))],
    leftAtMs: latest(rows.map(({ leftAtMs }) => leftAtMs)),
    graceEndsMs: latest(rows.map(({ graceEndsMs }) => graceEndsMs)),
    lastUsedMs: latest(rows.map(({ lastUsedMs }) => lastUsedMs)),
    requests: sum(({ requests }) => requests),
    bytes: sum(({ bytes }) => bytes),
    users: [...new Map(rows.flatMap(({ users }) => users).map((user) => [reporterKey(user), user])).values()],
    forgottenUntilMs: latest(rows.map(({ forgottenUntilMs }) => forgottenUntilMs)),
    holders: mergeHolders(
      rows.map(({ holders }) => holders),
      closed,
    ),
    moreHolders: {
      open: sum(({ moreHolders }) => moreHolders.open),
      idle: sum(({ moreHolders }) => moreHolders.idle),
      unseen: sum(({ moreHolders }) => moreHolders.unseen),
    },
    knownTo: group.flatMap(({ replica, seen }) =>
      replica !== undefined && (seen.state === 'listed' || seen.state === 'left') ? [replica] : [],
    ),
  };
}

const certainty: readonly EndpointState[] = ['listed', 'left', 'unlisted', 'unknown'];

/** One whose source is good is enough: it is the same world for all. That one still lists it outweighs the others. */
function stateOf(rows: readonly SeenEndpoint[]): EndpointState {
  return certainty.find((state) => rows.some((row) => row.state === state)) ?? 'unknown';
}

function latest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** Whether two texts name the same endpoint: a source may name the address alone. */
export function isSameEndpoint(a: string, b: string): boolean {
  const [port, other] = [portOf(a), portOf(b)];
  return ipOf(a) === ipOf(b) && (port === undefined || other === undefined || port === other);
}

function portOf(endpoint: string): number | undefined {
  return parseHostPort(endpoint)?.port;
}

function ipOf(endpoint: string): string {
  const host = parseHostPort(endpoint)?.host ?? endpoint;
  return canonicalIp(host) ?? host;
}
