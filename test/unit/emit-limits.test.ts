import { describe, expect, it } from 'vitest';
import { type ExportFailure, ExportFailures } from '../../src/emit/otlp/export-failures.ts';
import { TokenBuckets } from '../../src/emit/spans/token-buckets.ts';
import { toHrTime } from '../../src/emit/time.ts';

describe('the token buckets', () => {
  it('give out the burst, and then so many per second', () => {
    const buckets = new TokenBuckets({ perSecond: 2, burst: 3, buckets: 10 });
    const take = (nowMs: number): boolean => buckets.take('a', nowMs);
    expect([take(0), take(0), take(0), take(0)]).toEqual([true, true, true, false]);
    expect([take(400), take(500), take(500)]).toEqual([false, true, false]);
    expect(Array.from({ length: 5 }, () => take(60_000))).toEqual([true, true, true, false, false]);
  });

  it('give nothing for a clock that is set back', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 1, buckets: 10 });
    expect([buckets.take('a', 10_000), buckets.take('a', 0), buckets.take('a', 999)]).toEqual([true, false, false]);
  });

  it('are bounded', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 1, buckets: 10 });
    for (let i = 0; i < 1000; i += 1) buckets.take(`cluster-${i}`, 0);
    expect(buckets.size).toBe(10);
  });
});

describe('failures of exports', () => {
  it('are told at most each 30 s per signal, with how many were not told', () => {
    const told: ExportFailure[] = [];
    let nowMs = 0;
    const failures = new ExportFailures(
      (failure) => told.push(failure),
      () => nowMs,
    );
    const error = new Error('refused');
    for (nowMs = 0; nowMs <= 60_000; nowMs += 10_000) failures.failed('traces', error);
    failures.failed('metrics', undefined);
    expect(told).toEqual([
      { signal: 'traces', error, suppressed: 0 },
      { signal: 'traces', error, suppressed: 2 },
      { signal: 'traces', error, suppressed: 2 },
      { signal: 'metrics', error: undefined, suppressed: 0 },
    ]);
  });
});

describe('times', () => {
  it('are exact to the microsecond, and never have a second of nanoseconds', () => {
    expect(toHrTime(1_700_000_000_123.456)).toEqual([1_700_000_000, 123_456_000]);
    expect(toHrTime(1_700_000_000_999.9998)).toEqual([1_700_000_001, 0]);
    expect(toHrTime(0)).toEqual([0, 0]);
  });
});
