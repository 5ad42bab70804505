import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClusterTally } from '../../src/emit/tally/cluster-tally.ts';
import { History } from '../../src/emit/tally/history.ts';
import { attempt, judged, local, masked, startMs } from '../support/judged.ts';

const nowMs = 1_700_000_000_000;

describe('what the page counts of a cluster', () => {
  it('is what the rates are made of, with the cause and the cost of what was masked', () => {
    const tally = new ClusterTally(10);
    tally.exchange(judged(), nowMs);
    tally.exchange(masked(), nowMs);
    tally.exchange(local('client_error', 404), nowMs);
    expect(tally.rows(nowMs)).toContainEqual({
      cluster: 'app',
      reporterKind: 'envoy',
      lastMs: nowMs,
      total: expect.objectContaining({
        ok: 1,
        masked: 1,
        attempted: 2,
        attempts: 3,
        attemptsOk: 2,
        attemptsFailed: 1,
        maskedMs: 1005,
        causes: { connect_failure: 1 },
      }) as unknown,
      recent: expect.objectContaining({ ok: 1, masked: 1, maskedMs: 1005 }) as unknown,
    });
  });

  it('leaves a masked exchange in which a hedge won out of causes and cost, and its attempts out of the rate', () => {
    const tally = new ClusterTally(10);
    tally.exchange(masked({ verdict: { hedged: true } }), nowMs);
    expect(tally.rows(nowMs)[0]?.total).toEqual({ masked: 1, hedged: 1, attempted: 1, attempts: 2 });
  });

  it('counts an attempt where an internal redirect led it', () => {
    const tally = new ClusterTally(10);
    const attempts = [attempt(), attempt({ number: 2, cluster: 'other', startMs: startMs + 20 })];
    tally.exchange(
      judged({
        exchange: { attempts, delivered: 1 },
        verdict: { attempts: attempts.map(() => ({ result: 'ok', cause: undefined })) },
      }),
      nowMs,
    );
    const attemptsOf = (name: string) => tally.rows(nowMs).find(({ cluster }) => cluster === name)?.total.attempts;
    expect([attemptsOf('app'), attemptsOf('other')]).toEqual([1, 1]);
  });

  it('is bounded: the cluster unused for longest leaves', () => {
    const tally = new ClusterTally(2);
    for (const cluster of ['a', 'b', 'a', 'c']) tally.exchange(judged({ exchange: { cluster, attempts: [] } }), nowMs);
    expect(tally.rows(nowMs).map(({ cluster }) => cluster)).toEqual(['c', 'a']);
  });
});

describe('the last 15 minutes', () => {
  it('are 90 steps of ten seconds, the newest last', () => {
    const tally = new ClusterTally(10);
    tally.exchange(judged(), nowMs);
    tally.exchange(masked(), nowMs + 10_000);
    const [history] = tally.history(new Set(['app']), nowMs + 10_000);
    expect(history).toMatchObject({ bucketMs: 10_000, fromMs: nowMs - 88 * 10_000 });
    expect(history?.points).toHaveLength(90);
    expect(history?.points.slice(-3)).toEqual([
      { counted: 0, effective: 0, firstTry: 0 },
      { counted: 1, effective: 1, firstTry: 1 },
      { counted: 1, effective: 1, firstTry: 0 },
    ]);
  });

  it('forget what is older, and the totals do not', () => {
    const tally = new ClusterTally(10);
    tally.exchange(judged(), nowMs);
    const laterMs = nowMs + 15 * 60_000;
    expect(tally.rows(laterMs - 10_000)[0]?.recent.ok).toBe(1);
    for (const atMs of [laterMs, laterMs + 24 * 60 * 60_000]) {
      const { recent, total } = tally.rows(atMs)[0] ?? {};
      expect([recent, total?.ok]).toEqual([{}, 1]);
    }
  });

  it('and the totals are what was counted, whenever it was', () => {
    const pause = fc.oneof(fc.nat(12_000), fc.nat(1_200_000));
    const steps = fc.array(fc.tuple(pause, fc.constantFrom('count', 'read')), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(steps, (all) => {
        const tally = new ClusterTally(10);
        const times: number[] = [];
        const read: number[][] = [];
        const expected: number[][] = [];
        let atMs = nowMs;
        for (const [pauseMs, step] of all) {
          atMs += pauseMs;
          if (step === 'count') {
            times.push(atMs);
            tally.exchange(judged(), atMs);
            continue;
          }
          const fromMs = Math.floor(atMs / 10_000 - 89) * 10_000;
          const recent = times.filter((timeMs) => timeMs >= fromMs).length;
          const row = tally.rows(atMs)[0];
          read.push([row?.recent.ok ?? 0, row?.total.ok ?? 0]);
          expected.push([recent, times.length]);
        }
        expect(read).toEqual(expected);
      }),
    );
  });

  it('go on in the newest step when the clock is set back', () => {
    const history = new History(nowMs);
    for (const atMs of [nowMs, nowMs - 3_600_000]) {
      const { numbers, from } = history.row(atMs);
      numbers[from] = (numbers[from] ?? 0) + 1;
    }
    expect(history.trend(nowMs - 3_600_000).points.at(-1)?.counted).toBe(2);
  });

  it('are told of the clusters that are asked for alone', () => {
    const tally = new ClusterTally(10);
    tally.exchange(judged(), nowMs);
    expect(tally.history(new Set(['else']), nowMs)).toEqual([]);
  });
});
