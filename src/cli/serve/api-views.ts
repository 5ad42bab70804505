import type { Flip } from '../../endpoints/flips.ts';
import type { CoveredReporter } from '../../flow/coverage.ts';
import type { BoardRow } from '../../flow/pin-board.ts';
import { adviseOn } from '../../judge/advice.ts';
import { contradictionOf } from '../../judge/contradiction.ts';
import type { ExpectedReporter, ExpectedReporters } from '../../model/expected-reporter.ts';
import type { ClearedPin } from '../../model/pin-life.ts';
import type { UpstreamConnection } from '../../model/upstream-connection.ts';
import type { PinVerdict } from '../../model/verdict.ts';
import { type DiscoveryView, isStale, type ProxyView } from '../../model/view.ts';

/** The most rows of one answer: the page and a person read it, not a database. */
const longest = 1000;
/** Whoever is left out may be one whose config hides long requests. A row has some 300 bytes. */
const mostReporters = 10_000;

/** `/api/v1/pins`: connections in use, worst and oldest first, and the latest pins that cleared, latest first. */
export function pinsView(
  board: readonly BoardRow[],
  cleared: readonly ClearedPin[],
  { view, nowMs }: { view: DiscoveryView; nowMs: number },
) {
  const counts: Record<string, number> = {};
  for (const { verdict } of board) counts[verdict.pin] = (counts[verdict.pin] ?? 0) + 1;
  const pins = board
    .toSorted((a, b) => rank(a.verdict.pin) - rank(b.verdict.pin) || b.ageMs - a.ageMs)
    .slice(0, longest)
    .map(({ connection, verdict, ageMs }) => {
      const proxy = view.proxy(connection.cluster, connection.reporter.nodeId);
      return {
        ...connectionView(connection, verdict),
        ageMs,
        advice: adviseOn(connection, verdict, proxy),
        contradiction: contradictionOf({
          endpoint: connection.peer,
          pin: verdict,
          openedMs: connection.openedMs,
          proxy,
          nowMs,
        }),
      };
    });
  return {
    nowMs,
    counts,
    pins,
    cleared: cleared
      .toReversed()
      .slice(0, longest)
      .map(({ connection, pin, leftAtMs, source, sinceMs, clearedMs, how, by }) => ({
        ...connectionView(connection, { pin, reason: undefined, leftAtMs, source }),
        sinceMs,
        clearedMs,
        how,
        by,
      })),
  };
}

/** `/api/v1/clusters`: what discovery knows, how old that is, what the proxies say, and what each change did. */
export function clustersView(view: DiscoveryView, flipsOf: (cluster: string) => readonly Flip[], nowMs: number) {
  const proxiesOf = Map.groupBy(view.proxies(), ({ cluster }) => cluster);
  return {
    nowMs,
    clusters: view
      .clusters()
      .slice(0, longest)
      .map(({ listed, left, terminating, earlier, ...known }) => ({
        ...known,
        stale: isStale(known, nowMs),
        listed: Array.from(listed, ([endpoint, sinceMs]) => ({ endpoint, sinceMs })),
        left: Array.from(left, ([endpoint, leftAtMs]) => ({ endpoint, leftAtMs })),
        ...(terminating && { terminating: Array.from(terminating, ([endpoint, times]) => ({ endpoint, ...times })) }),
        ...(earlier && { earlier: Array.from(earlier, ([endpoint, owners]) => ({ endpoint, owners })) }),
        flips: flipsOf(known.cluster),
        proxies: (proxiesOf.get(known.cluster) ?? []).slice(0, longest).map((proxy) => proxyView(proxy, nowMs)),
      })),
  };
}

function proxyView({ hosts, ...proxy }: ProxyView, nowMs: number) {
  return {
    ...proxy,
    stale: isStale(proxy, nowMs),
    hosts: Array.from(hosts, ([endpoint, host]) => ({ endpoint, ...host })),
  };
}

/** `/api/v1/reporters`: who reports, when it was last heard, and who should report besides, if the config says it. */
export function reportersView(
  reporters: readonly CoveredReporter[],
  expected: { list: ExpectedReporters; missing: readonly ExpectedReporter[] } | undefined,
  nowMs: number,
) {
  return {
    nowMs,
    expected: expected && expectedView(expected.list, expected.missing, nowMs),
    truncated: reporters.length > mostReporters,
    reporters: reporters
      .slice(-mostReporters)
      .map(({ reporter, ...row }) => ({ ...reporter, ...row, silentMs: Math.max(0, nowMs - row.lastEntryMs) })),
  };
}

function expectedView({ pods, ...list }: ExpectedReporters, missing: readonly ExpectedReporter[], nowMs: number) {
  return {
    ...list,
    stale: isStale(list, nowMs),
    pods: pods.length,
    reporting: pods.length - missing.length,
    truncated: missing.length > mostReporters,
    missing: missing.slice(0, mostReporters),
  };
}

function connectionView(connection: UpstreamConnection, verdict: PinVerdict) {
  const { reporter, cluster, peer, layer, connectionId, openedMs, lastUsedMs, requests, bytes } = connection;
  const { kind, workload, namespace, pod, nodeId } = reporter;
  return {
    pin: verdict.pin,
    reason: verdict.reason,
    cluster,
    endpoint: peer.text,
    layer,
    connectionId,
    reporter: { kind, workload, namespace, pod, nodeId },
    source: verdict.source,
    leftAtMs: verdict.leftAtMs,
    openedMs,
    lastUsedMs,
    requests,
    bytes,
  };
}

const order = ['stale', 'stale_view', 'draining', 'unknown', 'unlisted', 'current'];

function rank(pin: string): number {
  return order.indexOf(pin);
}
