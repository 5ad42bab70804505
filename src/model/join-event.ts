/** What can befall a log entry, or the exchange that it belongs to, besides joining. docs/reference/verdicts.md. */
export const joinEvents = [
  'late',
  'doubled',
  'mirror',
  'keyless',
  'refused',
  'evicted',
  'expired',
  'orphaned',
  'adopted',
] as const;
export type JoinEvent = (typeof joinEvents)[number];
