import type { Thresholds } from './parameters.ts';

/** What the rules are written with. */
export interface Terms {
  thresholds: Thresholds;
  /** PromQL's duration of so many seconds. */
  span: (seconds: number) => string;
  /** So many seconds, as a number. */
  seconds: (seconds: number) => number;
  /** Matches Prometheus' label `job` of Sidelight's targets, as a whole. */
  job: string;
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** `timeScale`: by how much every time is longer; 1/60 makes an hour a minute, for demonstrations and tests. */
export function createTerms(options: { thresholds: Thresholds; timeScale: number; job: string }): Terms {
  return {
    thresholds: options.thresholds,
    job: options.job,
    span: (seconds) => duration(Math.round(seconds * 1000 * options.timeScale)),
    seconds: (seconds) => seconds * options.timeScale,
  };
}

function duration(ms: number): string {
  const unit = units.find(([, size]) => ms >= size && ms % size === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}
