import { describe, expect, it } from 'vitest';
import { DrainCurves, type DrainUse } from '../../src/endpoints/drain-curves.ts';
import type { UpstreamConnection } from '../../src/model/upstream-connection.ts';
import { connection } from '../support/connections.ts';
import { endpoint, reporter } from '../support/entries.ts';

const left = 100_000;

function setUp(maxEndpoints = 10) {
  const curves = new DrainCurves(maxEndpoints);
  const add = (atMs: number, use: Partial<DrainUse> = {}, of: Partial<UpstreamConnection> = {}) =>
    curves.add({ connection: connection(of), leftAtMs: left, atMs, requests: 1, bytes: 10, ...use });
  const curve = (leftAtMs = left) => curves.curve('app', '127.0.0.11:8080', leftAtMs);
  const points = () =>
    curve()?.points.map(({ atMs, requests, bytes, connections }) => [atMs - left, requests, bytes, connections]);
  return { add, curve, points };
}

describe('what still goes to an endpoint that left', () => {
  it('is told per second, with the connections that were used', () => {
    const { add, points, curve } = setUp();
    add(left + 100);
    add(left + 900);
    add(left + 1500, { bytes: 5 }, { serial: 2 });
    add(left + 1600, { requests: 0, bytes: 7 }, { serial: 3 });
    expect(points()).toEqual([
      [0, 2, 20, 1],
      [1000, 1, 12, 2],
    ]);
    expect(curve()).toMatchObject({ requests: 3, bytes: 32, lastUsedMs: left + 1600, bucketMs: 1000 });
  });

  it('is told by reporter, the busiest first', () => {
    const { add, curve } = setUp();
    const other = { reporter: { ...reporter, nodeId: 'other' }, serial: 2 };
    add(left + 100);
    for (let count = 0; count < 3; count += 1) add(left + 200, {}, other);
    expect(curve()?.reporters.map(({ reporter: { nodeId }, requests }) => [nodeId, requests])).toEqual([
      ['other', 3],
      [reporter.nodeId, 1],
    ]);
  });

  it('stays short for days, by getting coarser, and loses nothing', () => {
    const { add, curve } = setUp();
    for (let second = 0; second < 5000; second += 1) add(left + second * 1000);
    const whole = curve();
    expect(whole?.points.length).toBeLessThanOrEqual(240);
    expect(whole?.reporters[0]?.points.length).toBeLessThanOrEqual(30);
    for (const { points } of [whole, whole?.reporters[0]].filter((one) => one !== undefined))
      expect(points.reduce((sum, { requests }) => sum + requests, 0)).toBe(5000);
    expect(whole?.bucketMs).toBe(32_000);
    expect(Math.max(...(whole?.points.map(({ connections }) => connections) ?? []))).toBe(1);
  });

  it('begins anew when the endpoint came back and left again', () => {
    const { add, curve } = setUp();
    add(left + 100);
    add(left + 50_100, { leftAtMs: left + 50_000 });
    expect(curve()).toBeUndefined();
    expect(curve(left + 50_000)).toMatchObject({ requests: 1, points: [{ atMs: left + 50_000 }] });
  });

  it('is bounded: the endpoint unused for longest is forgotten, further reporters count in the total', () => {
    const { add, curve } = setUp(1);
    for (let count = 0; count < 60; count += 1)
      add(left + 100, {}, { serial: count, reporter: { ...reporter, nodeId: `node-${count}` } });
    expect(curve()).toMatchObject({ requests: 60, points: [{ connections: 60 }] });
    expect(curve()?.reporters).toHaveLength(50);
    add(left + 100, {}, { peer: endpoint('127.0.0.99:80') });
    expect(curve()).toBeUndefined();
  });
});
