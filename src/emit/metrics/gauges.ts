import type { Profile, Reporter } from '../../model/reporter.ts';
import { hasLeft, type Pin } from '../../model/verdict.ts';
import type { DiscoveryView, SourceKind } from '../../model/view.ts';
import { attribute as a, type Labels } from '../attributes.ts';
import { type Metric, metrics } from '../names.ts';
import { pinLabels } from './pin-labels.ts';
import type { Scope } from './series.ts';
import type { SeriesTable } from './series-table.ts';

/** One upstream connection that is in use, judged now. */
export interface PinnedConnection {
  reporter: Reporter;
  cluster: string;
  /** As Envoy spells it. */
  endpoint: string;
  layer: 'http' | 'tcp';
  pin: Pin;
  ageMs: number;
  /** The config expects pins of this cluster. */
  expected: boolean;
}

/** Who reports in one profile. */
export interface Coverage {
  profile: Profile;
  reporters: number;
  /** Those that reported before and do not now. */
  silent: number;
  /** Of any of them, epoch ms, our clock; absent: none yet. */
  lastEntryMs: number | undefined;
}

/** Where gauges come from: asked at each collection, so that what is gone is gone from the next scrape. */
export interface GaugeSources {
  pins: () => Iterable<PinnedConnection>;
  discovery: () => DiscoveryView;
  coverage: () => Iterable<Coverage>;
  /** How many proxies should report; `undefined`: not known now. */
  expected: () => number | undefined;
  /** Per cluster with traffic in the last 5 minutes: how many of its listed endpoints got none of it. */
  unused: () => ReadonlyMap<string, number>;
  /** 99th percentile, ms. */
  eventLoopLagMs: () => number;
}

/** One value that holds at a collection. */
export interface Point {
  metric: Metric;
  labels: Labels;
  value: number;
}

/** Pins by endpoint, verdict and layer, and the places whose endpoint left and is still connected. */
export function pinPoints(
  connections: Iterable<PinnedConnection>,
  table: SeriesTable,
  nowMs: number,
): { points: Point[]; left: Set<Scope> } {
  const groups = new Map<string, { labels: Labels; count: number; oldestMs: number }>();
  const left = new Set<Scope>();
  for (const { reporter, cluster, endpoint, layer, pin, ageMs, expected } of connections) {
    const place = table.endpoint(table.cluster(reporter, cluster, nowMs), endpoint, nowMs);
    if (hasLeft(pin)) left.add(place);
    const labels = { ...place.labels, ...pinLabels(pin, expected), [a.layer]: layer };
    const key = Object.values(labels).join('\n');
    const group = groups.get(key) ?? { labels, count: 0, oldestMs: 0 };
    group.count += 1;
    group.oldestMs = Math.max(group.oldestMs, ageMs);
    groups.set(key, group);
  }
  const points = [...groups.values()].flatMap(({ labels, count, oldestMs }) => [
    { metric: metrics.pins, labels, value: count },
    { metric: metrics.pinOldest, labels, value: oldestMs / 1000 },
  ]);
  return { points, left };
}

export function* discoveryPoints(view: DiscoveryView, nowMs: number): Generator<Point> {
  for (const { cluster, source, listed, lastAnswerMs, changes } of view.clusters()) {
    const labels: Labels & { [a.source]: SourceKind } = { [a.cluster]: cluster, [a.source]: source };
    yield { metric: metrics.endpointListed, labels, value: listed.size };
    yield { metric: metrics.discoveryChanges, labels: { ...labels, [a.change]: 'added' }, value: changes.added };
    yield { metric: metrics.discoveryChanges, labels: { ...labels, [a.change]: 'removed' }, value: changes.removed };
    if (lastAnswerMs !== undefined)
      yield { metric: metrics.discoveryAge, labels, value: Math.max(0, nowMs - lastAnswerMs) / 1000 };
  }
}

export function* unusedPoints(unused: ReadonlyMap<string, number>): Generator<Point> {
  for (const [cluster, value] of unused)
    yield { metric: metrics.endpointUnused, labels: { [a.cluster]: cluster }, value };
}

export function* coveragePoints(coverage: Iterable<Coverage>, nowMs: number): Generator<Point> {
  for (const { profile, reporters, silent, lastEntryMs } of coverage) {
    const labels: Labels = { [a.profile]: profile };
    yield { metric: metrics.coverageReporters, labels, value: reporters };
    yield { metric: metrics.coverageSilent, labels, value: silent };
    if (lastEntryMs !== undefined)
      yield { metric: metrics.coverageLastEntryAge, labels, value: Math.max(0, nowMs - lastEntryMs) / 1000 };
  }
}
