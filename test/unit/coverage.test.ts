import { describe, expect, it } from 'vitest';
import { Coverage, type Covering } from '../../src/flow/coverage.ts';
import type { Profile } from '../../src/model/reporter.ts';
import { reporter } from '../support/entries.ts';

const named = (nodeId: string, profile: Profile): Covering => ({
  reporter: { ...reporter, nodeId },
  profile,
  configVersion: 2,
});
const ids = (coverage: Coverage) => coverage.reporters().map((row) => row.reporter.nodeId);

describe('who reports', () => {
  it('is a log stream that is open, however long it is silent', () => {
    const coverage = new Coverage(10);
    coverage.heard(named('a', 'observe'), 1000, 1);
    expect(coverage.summary(9_999_999, 60_000)).toEqual([
      { profile: 'full', reporters: 0, silent: 0, lastEntryMs: undefined },
      { profile: 'tag', reporters: 0, silent: 0, lastEntryMs: undefined },
      { profile: 'observe', reporters: 1, silent: 0, lastEntryMs: 1000 },
    ]);
    expect(coverage.isConnected(named('a', 'observe').reporter)).toBe(true);
    coverage.streamEnded(named('a', 'observe'));
    expect(coverage.summary(9_999_999, 60_000)[2]).toEqual({
      profile: 'observe',
      reporters: 0,
      silent: 1,
      lastEntryMs: 1000,
    });
    expect(coverage.isConnected(named('a', 'observe').reporter)).toBe(false);
  });

  it('is, where a stream lives as long as a request, who tagged lately', () => {
    const coverage = new Coverage(10);
    coverage.heard(named('a', 'tag'), 1000);
    expect(coverage.summary(60_999, 60_000)[1]?.reporters).toBe(1);
    expect(coverage.summary(61_000, 60_000)[1]?.reporters).toBe(0);
  });

  it('is nobody of an hour ago because our clock was set back', () => {
    const coverage = new Coverage(10);
    coverage.heard(named('a', 'tag'), 3_600_000);
    expect(coverage.summary(0, 60_000)[1]?.reporters).toBe(0);
  });

  it('is one reporter, however many workers log, until the last of their streams ends', () => {
    const coverage = new Coverage(10);
    coverage.heard(named('a', 'full'), 1000, 1);
    coverage.heard(named('a', 'full'), 2000, 1);
    coverage.heard(named('a', 'full'), 3000);
    expect(coverage.reporters()).toMatchObject([{ streams: 2, firstSeenMs: 1000, lastEntryMs: 3000 }]);
    coverage.streamEnded(named('a', 'full'));
    coverage.streamEnded(named('a', 'full'));
    coverage.streamEnded(named('a', 'full'));
    expect(coverage.reporters()).toMatchObject([{ streams: 0, firstSeenMs: 1000, lastEntryMs: 3000 }]);
  });

  it('counts one proxy once in each profile that it feeds', () => {
    const coverage = new Coverage(10);
    coverage.heard(named('a', 'full'), 1000, 1);
    coverage.heard(named('a', 'tag'), 1000);
    expect(coverage.summary(1000, 60_000).map(({ reporters }) => reporters)).toEqual([1, 1, 0]);
  });
});

describe('over the bound', () => {
  it('the one not heard of for longest leaves', () => {
    const coverage = new Coverage(2);
    for (const [index, nodeId] of ['a', 'b', 'a', 'c'].entries()) coverage.heard(named(nodeId, 'tag'), index);
    expect(ids(coverage)).toEqual(['a', 'c']);
  });

  it('one whose log stream is open stays before one that is gone, or it would come back as one without a stream', () => {
    const coverage = new Coverage(2);
    coverage.heard(named('open', 'full'), 1, 1);
    coverage.heard(named('gone', 'full'), 2, 1);
    coverage.streamEnded(named('gone', 'full'));
    coverage.heard(named('new', 'full'), 3, 1);
    expect(ids(coverage)).toEqual(['open', 'new']);
  });
});

describe('who should report and does not', () => {
  const quietMs = 60_000;
  const pods = (...names: string[]) => names.map((pod) => ({ namespace: 'shop', pod }));
  const inPod = (pod: string, profile: Profile = 'observe', namespace = 'shop'): Covering => ({
    reporter: { ...reporter, namespace, pod, nodeId: `${pod}.${namespace}` },
    profile,
    configVersion: 2,
  });

  it('is a pod of which no log stream is open', () => {
    const coverage = new Coverage(10);
    coverage.heard(inPod('a'), 1000, 1);
    coverage.heard(inPod('b'), 1000, 1);
    coverage.heard(inPod('c', 'observe', 'other'), 1000, 1);
    expect(coverage.missing(pods('a', 'b', 'c'), 2000, quietMs)).toEqual(pods('c'));
    coverage.streamEnded(inPod('b'));
    expect(coverage.missing(pods('a', 'b', 'c'), 2000, quietMs)).toEqual(pods('b', 'c'));
  });

  it('is, in profile tag, a pod without a request lately', () => {
    const coverage = new Coverage(10);
    coverage.heard(inPod('a', 'tag'), 1000);
    expect(coverage.missing(pods('a'), 1000 + quietMs - 1, quietMs)).toEqual([]);
    expect(coverage.missing(pods('a'), 1000 + quietMs, quietMs)).toEqual(pods('a'));
  });
});
