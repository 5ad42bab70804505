import type { Terms } from '../terms.ts';

export interface RecordingRule {
  record: `sidelight:${string}`;
  /** What it says, in a few words. */
  meaning: string;
  expr: (terms: Terms) => string;
}

/** Where nothing came there is no ratio, not a zero. */
export const ratio = (above: string, below: string) => `  ${above}\n/\n  (${below} > 0)`;
