import { isListedByProxy } from '../judge/contradiction.ts';
import { listedSinceMs, locate } from '../judge/pin.ts';
import { parseHostPort } from '../lib/host-port.ts';
import type { Advice } from '../model/advice.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type {
  DrainCurve,
  EndpointReport,
  ForgottenConnections,
  Holder,
  HolderState,
} from '../model/endpoint-report.ts';
import type { Reporter } from '../model/reporter.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import type { PinVerdict } from '../model/verdict.ts';
import type { ClusterView, DiscoveryView, ProxyView } from '../model/view.ts';
import type { EndpointUse } from './activity.ts';
import type { DrainCurves } from './drain-curves.ts';

/** Which endpoints are asked for; all of what is given must fit. Empty: all. */
export interface EndpointQuery {
  cluster?: string | undefined;
  /** Canonical IP; without a port, any. */
  endpoint?: { ip: string; port: number | undefined } | undefined;
  /** The name that the cluster's source asked, in small letters. */
  host?: string | undefined;
  /** Only the addresses that left somewhere, in every cluster that knows them. Absent: those too that did not. */
  left?: boolean;
}

interface Judged {
  connection: UpstreamConnection;
  verdict: PinVerdict;
}

/** All that is known at this moment. */
export interface ReportFacts {
  view: DiscoveryView;
  uses: readonly EndpointUse[];
  inUse: readonly Judged[];
  parked: readonly Judged[];
  curves: DrainCurves;
  forgottenAt(cluster: string, endpoint: string): ForgottenConnections | undefined;
  /** Whether it has a log stream now. */
  isConnected(reporter: Reporter): boolean;
  idleTimeoutMs(connection: UpstreamConnection): number | undefined;
  advise(judged: Judged): Advice | undefined;
  nowMs: number;
}

/** An answer about many endpoints is brief about each, so that none grows beyond some megabytes. */
interface Detail {
  /** Connections listed per endpoint; their number is always whole. */
  holders: number;
  /** The curve over time, of all and by reporter; its sums are always there. */
  points: boolean;
}

function detailFor(rows: number): Detail {
  return { holders: Math.min(200, Math.max(5, Math.floor(4000 / rows))), points: rows <= 20 };
}

interface Row {
  cluster: string;
  endpoint: Pick<Endpoint, 'text' | 'ip' | 'port'>;
  use: EndpointUse | undefined;
  held: { judged: Judged; state: HolderState }[];
}

/** What is known of each endpoint that a source lists or listed, or that was used: those to watch first. */
export function endpointReports(facts: ReportFacts, query: EndpointQuery): EndpointReport[] {
  const rows = new Rows(query, facts.view);
  for (const use of facts.uses) rows.at(use.cluster, use.endpoint, (row) => (row.use = use));
  for (const judged of facts.inUse) rows.hold(judged, stateInUse(judged.connection));
  for (const judged of facts.parked) rows.hold(judged, 'unseen');
  for (const view of facts.view.clusters()) rows.addListed(view);
  const all = query.left === true ? leftSomewhere(rows.all(), facts.view) : rows.all();
  const usesOf = clusterUses(facts.uses, all);
  const proxiesOf = Map.groupBy(facts.view.proxies(), ({ cluster }) => cluster);
  const detail = detailFor(all.length);
  return all
    .map((row) =>
      report(row, facts, { uses: usesOf.get(row.cluster) ?? 0, proxies: proxiesOf.get(row.cluster) ?? [] }, detail),
    )
    .toSorted((a, b) => order[a.state] - order[b.state] || held(b) - held(a) || b.requests - a.requests);
}

function leftSomewhere(rows: readonly Row[], view: DiscoveryView): Row[] {
  const texts = view.clusters().flatMap(({ left }) => [...left.keys()]);
  const addresses = new Set(texts.map((text) => parseHostPort(text)?.host ?? text));
  return rows.filter(({ endpoint: { ip } }) => ip !== undefined && addresses.has(ip));
}

/** How many listed endpoints of each cluster with traffic were not used in the window. */
export function unusedEndpoints(uses: Iterable<EndpointUse>, view: DiscoveryView): Map<string, number> {
  const usedOf = new Map<string, Set<string>>();
  for (const { cluster, endpoint, uses: recent } of uses) {
    if (recent === 0 || endpoint.ip === undefined) continue;
    const used = usedOf.get(cluster) ?? new Set();
    usedOf.set(cluster, used.add(endpoint.ip).add(endpoint.text));
  }
  const unused = new Map<string, number>();
  for (const { cluster, listed } of view.clusters()) {
    const used = usedOf.get(cluster);
    if (used !== undefined) unused.set(cluster, [...listed.keys()].filter((key) => !used.has(key)).length);
  }
  return unused;
}

/** Proxies named that still list an endpoint. */
const mostListing = 100;

const order = { left: 0, unknown: 1, unlisted: 2, listed: 3 } as const;

function held({ connections: { open, idle, unseen } }: EndpointReport): number {
  return open + idle + unseen;
}

class Rows {
  readonly #query: EndpointQuery;
  readonly #view: DiscoveryView;
  readonly #byKey = new Map<string, Row>();
  /** Cluster and address of each row, with and without its port: how a source may spell it. */
  readonly #spelt = new Set<string>();

  constructor(query: EndpointQuery, view: DiscoveryView) {
    this.#query = query;
    this.#view = view;
  }

  all(): Row[] {
    return [...this.#byKey.values()];
  }

  at(cluster: string, endpoint: Row['endpoint'], change: (row: Row) => void): void {
    if (!this.#isAsked(cluster, endpoint)) return;
    const key = `${cluster}\n${endpoint.text}`;
    let row = this.#byKey.get(key);
    if (row === undefined) {
      row = { cluster, endpoint, use: undefined, held: [] };
      this.#byKey.set(key, row);
      if (endpoint.ip !== undefined) this.#spelt.add(key).add(`${cluster}\n${endpoint.ip}`);
    }
    change(row);
  }

  hold(judged: Judged, state: HolderState): void {
    this.at(judged.connection.cluster, judged.connection.peer, ({ held: all }) => all.push({ judged, state }));
  }

  /** What a source lists or listed and nobody used gets a row too. */
  addListed({ cluster, listed, left }: ClusterView): void {
    for (const text of [...listed.keys(), ...left.keys()]) {
      if (this.#spelt.has(`${cluster}\n${text}`)) continue;
      const { host: ip, port } = parseHostPort(text) ?? { host: text, port: undefined };
      this.at(cluster, { text, ip, port }, () => undefined);
    }
  }

  #isAsked(cluster: string, { ip, port }: Row['endpoint']): boolean {
    const { cluster: wanted, endpoint, host } = this.#query;
    if (wanted !== undefined && wanted !== cluster) return false;
    if (host !== undefined && this.#view.cluster(cluster)?.subject.toLowerCase() !== host) return false;
    if (endpoint === undefined) return true;
    return endpoint.ip === ip && (endpoint.port === undefined || port === undefined || endpoint.port === port);
  }
}

function clusterUses(uses: readonly EndpointUse[], rows: readonly Row[]): Map<string, number> {
  const wanted = new Map(rows.map(({ cluster }) => [cluster, 0]));
  for (const { cluster, uses: recent } of uses) {
    const sum = wanted.get(cluster);
    if (sum !== undefined) wanted.set(cluster, sum + recent);
  }
  return wanted;
}

function report(
  row: Row,
  facts: ReportFacts,
  ofCluster: { uses: number; proxies: readonly ProxyView[] },
  detail: Detail,
): EndpointReport {
  const { cluster, endpoint, use } = row;
  const [someone] = row.held;
  const view = facts.view.cluster(cluster, someone?.judged.connection.reporter.nodeId);
  const place = locate(view, endpoint, facts.nowMs);
  const leftAtMs = place.state === 'left' ? place.leftAtMs : undefined;
  const requests = use?.uses ?? 0;
  return {
    cluster,
    endpoint: endpoint.text,
    state: place.state,
    reason: place.state === 'unknown' ? place.reason : undefined,
    source: view?.source,
    subject: view?.subject,
    listedSinceMs: place.state === 'listed' ? listedSinceMs(place.view, endpoint) : undefined,
    listedBy: place.state === 'listed' ? [] : listedBy(ofCluster.proxies, endpoint, facts.nowMs),
    leftAtMs,
    graceMs: view?.graceMs,
    requests,
    share: ofCluster.uses === 0 ? undefined : requests / ofCluster.uses,
    fairShare: place.state === 'listed' ? 1 / place.view.listed.size : undefined,
    lastUsedMs: lastUse(row),
    connections: count(row.held),
    forgotten: facts.forgottenAt(cluster, endpoint.text),
    holders: place.state === 'listed' ? [] : holders(row.held, facts, detail.holders),
    drain: leftAtMs === undefined ? undefined : drainOf(facts.curves.curve(cluster, endpoint.text, leftAtMs), detail),
  };
}

/** The control plane or the resolver of some may give an old answer. */
function listedBy(proxies: readonly ProxyView[], endpoint: Row['endpoint'], nowMs: number): string[] {
  const listing = proxies.filter((proxy) => isListedByProxy(proxy, endpoint, nowMs));
  return listing.slice(0, mostListing).map(({ nodeId }) => nodeId);
}

function drainOf(curve: DrainCurve | undefined, { points }: Detail): DrainCurve | undefined {
  if (curve === undefined || points) return curve;
  return { ...curve, points: [], reporters: curve.reporters.map((reporter) => ({ ...reporter, points: [] })) };
}

function lastUse({ use, held: all }: Row): number | undefined {
  const times = all.map(({ judged }) => judged.connection.lastUsedMs);
  if (use !== undefined) times.push(use.lastUsedMs);
  return times.length === 0 ? undefined : Math.max(...times);
}

function count(all: Row['held']): Record<HolderState, number> {
  const counts = { open: 0, idle: 0, unseen: 0 };
  for (const { state } of all) counts[state] += 1;
  return counts;
}

const worst = { open: 0, idle: 1, unseen: 2 } as const;

function holders(all: Row['held'], facts: ReportFacts, most: number): Holder[] {
  return all
    .toSorted((a, b) => worst[a.state] - worst[b.state] || a.judged.connection.openedMs - b.judged.connection.openedMs)
    .slice(0, most)
    .map(({ judged, state }) => holder(judged, state, facts));
}

function holder(judged: Judged, state: HolderState, facts: ReportFacts): Holder {
  const { reporter, layer, connectionId, openedMs, lastUsedMs, requests, bytes } = judged.connection;
  return {
    reporter,
    layer,
    connectionId,
    state,
    pin: judged.verdict.pin,
    reason: judged.verdict.reason,
    openedMs,
    lastUsedMs,
    mayBeOpenUntilMs: mayBeOpenUntil(judged.connection, facts.idleTimeoutMs(judged.connection)),
    requests,
    bytes,
    reporterConnected: facts.isConnected(reporter),
    advice: facts.advise(judged),
  };
}

/**
 * A request that runs keeps its connection open for as long as it likes. Counted from when it was last heard of, not from
 * its last use: that is Envoy's time mapped to ours, and a TCP connection that is heard of has outlived its idle time.
 */
function mayBeOpenUntil(
  { layer, underWay, lastUsedMs, lastHeardMs }: UpstreamConnection,
  idleTimeoutMs: number | undefined,
): number | undefined {
  if (idleTimeoutMs === undefined || (layer === 'http' && underWay.size > 0)) return undefined;
  return Math.max(lastUsedMs, lastHeardMs) + idleTimeoutMs;
}

function stateInUse({ layer, underWay }: UpstreamConnection): HolderState {
  return layer === 'tcp' || underWay.size > 0 ? 'open' : 'idle';
}
