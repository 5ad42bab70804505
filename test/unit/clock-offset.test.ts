import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClockOffset } from '../../src/assemble/clock-offset.ts';

const bufferedMs = 2500;
const hour = 3_600_000;
const stepMs = 100;
/** Entries that one window holds at that step. */
const windowEntries = 500;
const anyOffset = fc.integer({ min: -24 * hour, max: 24 * hour });

/** A clock that heard of entries: Envoy's clock is so far behind ours, and each entry took so long to come. */
function heard(offsetMs: number, delaysMs: readonly number[]): ClockOffset {
  const clock = new ClockOffset(bufferedMs);
  delaysMs.forEach((delayMs, index) => clock.observe(index * stepMs, index * stepMs + offsetMs + delayMs));
  return clock;
}

const errorOf = (clock: ClockOffset, offsetMs: number) => Math.abs(clock.offsetMs - offsetMs);

describe('the clock of an Envoy against ours', () => {
  it('lies within the uncertainty after few entries, wherever it is and however long each was kept back', () => {
    const delays = fc.array(fc.integer({ min: 0, max: bufferedMs }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(anyOffset, delays, (offsetMs, delaysMs) => {
        const clock = heard(offsetMs, delaysMs);
        expect(errorOf(clock, offsetMs)).toBeLessThanOrEqual(clock.uncertaintyMs);
        expect(clock.uncertaintyMs).toBeLessThanOrEqual(bufferedMs);
      }),
    );
  });

  it('lies within an uncertainty that shrinks, where entries end at any moment of the beat at which Envoy sends', () => {
    const count = fc.integer({ min: 10, max: 1000 });
    fc.assert(
      fc.property(anyOffset, count, fc.double({ min: 0, max: 1, noNaN: true }), (offsetMs, entries, phase) => {
        // Steps of the golden ratio go evenly over the beat.
        const delays = Array.from({ length: entries }, (_, index) => ((phase + index * 0.618034) % 1) * bufferedMs);
        const clock = heard(offsetMs, delays);
        expect(errorOf(clock, offsetMs)).toBeLessThanOrEqual(clock.uncertaintyMs);
        expect(clock.uncertaintyMs).toBeLessThan((5 * bufferedMs) / Math.min(entries, windowEntries) + 0.001);
      }),
    );
  });

  it('lies within the uncertainty after a burst, whose entries all waited for the same sending', () => {
    const count = fc.integer({ min: 1, max: 1000 });
    fc.assert(
      fc.property(anyOffset, count, fc.integer({ min: 0, max: bufferedMs }), (offsetMs, entries, keptBackMs) => {
        const clock = new ClockOffset(bufferedMs);
        for (let index = 0; index < entries; index += 1) clock.observe(index / 10, 100 + offsetMs + keptBackMs);
        expect(errorOf(clock, offsetMs)).toBeLessThanOrEqual(clock.uncertaintyMs + 100);
      }),
    );
  });

  it('is taken as equal where that explains what was seen', () => {
    expect(heard(0, [900, 3, 2400])).toMatchObject({ offsetMs: 0, uncertaintyMs: 2497 });
    expect(heard(0, [bufferedMs])).toMatchObject({ offsetMs: 0, uncertaintyMs: 2500 });
    expect(heard(0, [1250])).toMatchObject({ offsetMs: 0, uncertaintyMs: 1250 });
  });

  it('an hour behind or ahead is told from an entry that was kept back', () => {
    expect(heard(hour, [40, 700])).toMatchObject({ offsetMs: hour + 40, uncertaintyMs: bufferedMs });
    expect(heard(-hour, [40, 700])).toMatchObject({ offsetMs: -hour + 40, uncertaintyMs: bufferedMs });
  });

  it('a clock that was set right is believed again within two windows, either way', () => {
    for (const wrongMs of [30_000, -30_000]) {
      const clock = new ClockOffset(bufferedMs);
      const keptBackMs = (ms: number) => (((ms / stepMs) * 0.618034) % 1) * bufferedMs;
      for (let ms = 0; ms < 100_000; ms += stepMs) clock.observe(ms + wrongMs, ms + keptBackMs(ms));
      expect(errorOf(clock, -wrongMs)).toBeLessThanOrEqual(clock.uncertaintyMs);
      for (let ms = 100_000; ms < 210_000; ms += stepMs) clock.observe(ms, ms + keptBackMs(ms));
      expect(clock.offsetMs).toBe(0);
    }
  });

  it('before anything was heard nothing is known of it', () => {
    expect(new ClockOffset(bufferedMs)).toMatchObject({ offsetMs: 0, uncertaintyMs: Infinity });
  });
});
