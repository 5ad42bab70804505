import { describe, expect, it } from 'vitest';
import { BoundedTable, type Shelf } from '../../src/emit/metrics/bounded-table.ts';
import { seriesKind } from '../../src/emit/metrics/series-kind.ts';
import { type SeriesLimits, SeriesTable } from '../../src/emit/metrics/series-table.ts';
import { metrics } from '../../src/emit/names.ts';
import type { Reporter } from '../../src/model/reporter.ts';
import { reporter } from '../support/entries.ts';

const minute = 60_000;

function tableWith(limits: Partial<SeriesLimits>): { table: SeriesTable; overflows: string[]; born: string[] } {
  const overflows: string[] = [];
  const born: string[] = [];
  const table = new SeriesTable(
    { reporters: 10, clusters: 10, endpoints: 10, idleMs: minute, ...limits },
    {
      onOverflow: (label) => overflows.push(label),
      onNewCluster: (scope) => born.push(scope.labels['sidelight.cluster'] ?? '(none)'),
    },
  );
  return { table, overflows, born };
}

function count(table: SeriesTable, cluster: string, nowMs: number, by: Reporter = reporter): void {
  table.cluster(by, cluster, nowMs).add(seriesKind(metrics.attemptedRequests), nowMs);
}

function clusterCounts(table: SeriesTable): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const scope of table.scopes())
    for (const series of scope.series())
      if ('value' in series) counts[scope.labels['sidelight.cluster'] ?? '(none)'] = series.value;
  return counts;
}

describe('the table of series', () => {
  it('counts a cluster, endpoint or workload that is really named "other" in the series of that name, not beside it', () => {
    const { table } = tableWith({ clusters: 1 });
    const named = { ...reporter, workload: 'other', namespace: 'other' };
    for (const cluster of ['a', 'b', 'other']) count(table, cluster, 0);
    count(table, 'a', 0, named);
    table.endpoint(table.cluster(reporter, 'a', 0), 'other', 0).add(seriesKind(metrics.attempts), 0);
    const labels = [...table.scopes()]
      .filter((scope) => [...scope.series()].length > 0)
      .map((scope) => JSON.stringify(scope.labels));
    expect(new Set(labels).size).toBe(labels.length);
    expect(labels).toHaveLength(4);
  });

  it('gives what finds no place to "other" and says so, while what has a place keeps it', () => {
    const { table, overflows } = tableWith({ clusters: 2 });
    for (const cluster of ['a', 'b', 'c', 'd', 'a']) count(table, cluster, 0);
    expect(clusterCounts(table)).toEqual({ a: 2, b: 1, other: 2 });
    expect(overflows).toEqual(['cluster', 'cluster']);
  });

  it('gives the place of the least recently used to a new one, once that has been idle long enough', () => {
    const { table } = tableWith({ clusters: 2 });
    count(table, 'a', 0);
    count(table, 'b', 1000);
    count(table, 'a', 2000);
    count(table, 'c', minute);
    expect(clusterCounts(table)).toEqual({ a: 2, b: 1, other: 1 });
    count(table, 'c', 1000 + minute);
    expect(clusterCounts(table)).toEqual({ a: 2, c: 1, other: 1 });
  });

  it('drops the endpoints of a cluster with it', () => {
    const { table } = tableWith({ clusters: 1, endpoints: 2 });
    const first = table.cluster(reporter, 'a', 0);
    table.endpoint(first, '10.0.0.1:80', 0).add(seriesKind(metrics.attempts), 0);
    table.endpoint(first, '10.0.0.2:80', 0).add(seriesKind(metrics.attempts), 0);
    const second = table.cluster(reporter, 'b', minute);
    table.endpoint(second, '10.0.0.3:80', minute).add(seriesKind(metrics.attempts), minute);
    const endpoints = [...table.endpointScopes()].filter(({ size }) => size > 0).map((scope) => scope.labels);
    expect(endpoints).toEqual([
      expect.objectContaining({ 'sidelight.cluster': 'b', 'sidelight.endpoint': '10.0.0.3:80' }),
    ]);
  });

  it('drops the clusters of a reporter with it', () => {
    const { table } = tableWith({ reporters: 1 });
    count(table, 'a', 0);
    count(table, 'b', minute, { ...reporter, workload: 'till' });
    expect(clusterCounts(table)).toEqual({ b: 1 });
  });

  it('keeps the kind of a reporter that finds no place', () => {
    const { table, overflows } = tableWith({ reporters: 1 });
    count(table, 'a', 0);
    const scope = table.cluster({ ...reporter, workload: 'till', kind: 'gateway' }, 'a', 0);
    expect(scope.labels).toEqual({
      'sidelight.cluster': 'a',
      'sidelight.reporter.kind': 'gateway',
      'sidelight.reporter.workload': 'other',
      'sidelight.reporter.namespace': 'other',
    });
    expect(overflows).toEqual(['reporter']);
  });

  it('gives endpoints that find no place to "other" of their cluster', () => {
    const { table, overflows } = tableWith({ endpoints: 1 });
    const cluster = table.cluster(reporter, 'a', 0);
    const labels = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'].map(
      (endpoint) => table.endpoint(cluster, endpoint, 0).labels['sidelight.endpoint'],
    );
    expect(labels).toEqual(['10.0.0.1:80', 'other', 'other']);
    expect(overflows).toEqual(['endpoint', 'endpoint']);
  });

  it('holds 3,000 clusters without an "other"', () => {
    const { table, overflows, born } = tableWith({ clusters: 4000 });
    for (let i = 0; i < 3000; i += 1) count(table, `outbound|80||svc-${i}.ns.svc.cluster.local`, 0);
    expect(overflows).toEqual([]);
    expect(new Set(born).size).toBe(3000);
  });

  it('tells of a new cluster once per reporter', () => {
    const { table, born } = tableWith({});
    count(table, 'a', 0);
    count(table, 'a', 1);
    count(table, 'a', 2, { ...reporter, workload: 'till' });
    expect(born).toEqual(['a', 'a']);
  });
});

describe('a bounded table', () => {
  it('gives up the places of the idle one by one, the longest idle first, and never of what was used meanwhile', () => {
    const dropped: string[] = [];
    const table = new BoundedTable<string>(3, minute, (value) => dropped.push(value));
    const shelf: Shelf<string> = new Map();
    const get = (key: string, nowMs: number) => table.get(shelf, key, nowMs, () => key);
    for (const [key, seconds] of [
      ['a', 2],
      ['b', 0],
      ['c', 1],
    ] as const)
      get(key, seconds * 1000);
    expect(get('d', 2 * minute)).toBe('d');
    get('c', 2 * minute);
    expect(get('e', 2 * minute)).toBe('e');
    expect(get('f', 2 * minute)).toBeUndefined();
    expect(dropped).toEqual(['b', 'a']);
    expect(table.size).toBe(3);
  });

  it('does not take a clock that was set back for idleness', () => {
    const table = new BoundedTable<string>(1, minute, () => undefined);
    const shelf: Shelf<string> = new Map();
    table.get(shelf, 'a', 10 * minute, () => 'a');
    expect(table.get(shelf, 'b', 0, () => 'b')).toBeUndefined();
    expect(table.get(shelf, 'a', 0, () => 'made anew')).toBe('a');
  });

  it('gives up a place one idle time after the clock was set back, not when it is where it was', () => {
    const table = new BoundedTable<string>(2, minute, () => undefined);
    const shelf: Shelf<string> = new Map();
    table.get(shelf, 'a', 10 * minute, () => 'a');
    table.get(shelf, 'b', 11 * minute, () => 'b');
    expect(table.get(shelf, 'c', 0, () => 'c')).toBeUndefined();
    expect(table.get(shelf, 'c', minute, () => 'c')).toBe('c');
    expect(table.get(shelf, 'd', minute, () => 'd')).toBe('d');
  });
});
