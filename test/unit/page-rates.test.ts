import { describe, expect, it } from 'vitest';
import { bytes, duration, percent, wholeDuration } from '../../page/format.js';
import { ratesOf } from '../../page/rates.js';

describe('the rates of the page', () => {
  it('are those of the example in docs/reference/metrics.md', () => {
    const counts = {
      ok: 40,
      masked: 46,
      attempted: 86,
      attempts: 132,
      attemptsOk: 86,
      attemptsFailed: 46,
      maskedMs: 46_000,
    };
    const { effective, firstTry, masked, actual, amplification, maskedMs } = ratesOf(counts);
    expect([effective, firstTry, masked, actual].map(percent)).toEqual(['100 %', '46.5 %', '53.5 %', '65.2 %']);
    expect(amplification?.toFixed(2)).toBe('1.53');
    expect(maskedMs).toBe(1000);
  });

  it('leave out what tells nothing about success, and what a hedge won', () => {
    const counts = { ok: 1, masked: 2, hedged: 1, aborted: 4, unknown: 8, localClientError: 16, localServerError: 1 };
    expect(ratesOf(counts)).toMatchObject({ all: 32, counted: 3, effective: 2 / 3, firstTry: 1 / 3, aborted: 4 / 32 });
  });

  it('are absent where nothing counts, and not 0', () => {
    const { effective, actual, amplification, maskedMs } = ratesOf({ unknown: 3 });
    expect([effective, actual, amplification, maskedMs]).toEqual([undefined, undefined, undefined, undefined]);
    expect(percent(effective)).toBe('–');
  });
});

describe('the numbers of the page', () => {
  it('never say all of what is not quite all, nor nothing of what is not quite nothing', () => {
    expect([1, 0.99999, 0.9996, 0.5, 0.00001, 0].map(percent)).toEqual([
      '100 %',
      '>99.99 %',
      '99.96 %',
      '50.0 %',
      '<0.01 %',
      '0 %',
    ]);
  });

  it('have their units', () => {
    expect([4, 950, 1200, 250_000].map(duration)).toEqual(['4.0 ms', '950 ms', '1.20 s', '4 min 10 s']);
    expect([0, 59_900, 3_600_000, 187_200_000].map(wholeDuration)).toEqual(['0 s', '1 min', '1 h', '2 d 4 h']);
    expect([12, 3400, 1_200_000].map(bytes)).toEqual(['12 B', '3.4 kB', '1.2 MB']);
  });
});
