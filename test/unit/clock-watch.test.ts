import { expect, it } from 'vitest';
import { ClockWatch } from '../../src/cli/serve/clock-watch.ts';

it('tells once how far the clock was set, and nothing of time that passed or of drift', () => {
  let nowMs = 1_000_000;
  let runMs = 50;
  const watch = new ClockWatch(
    () => nowMs,
    () => runMs,
  );
  const after = (ranMs: number, setMs: number) => {
    runMs += ranMs;
    nowMs += ranMs + setMs;
    return [watch.takeSetMs(), watch.takeSetMs()];
  };
  expect(after(3_600_000, 0)).toEqual([0, 0]);
  expect(after(250, 7_200_000)).toEqual([7_200_000, 0]);
  expect(after(250, -7_200_000)).toEqual([-7_200_000, 0]);
  expect(after(250, 999)).toEqual([0, 0]);
});
