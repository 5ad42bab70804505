import type { UpstreamConnection } from '../model/upstream-connection.ts';

/** Sorting for each one that does not fit would be quadratic: so a share of all leaves at once. */
const share = 1 / 20;

/**
 * Which connections leave a full table: neither the pinned, nor the oldest, nor the busiest, as long as there are
 * others. One in twenty, at least one.
 */
export function leastWorthy<T extends UpstreamConnection>(all: readonly T[], isPinned: (one: T) => boolean): T[] {
  const most = Math.ceil(all.length * share);
  const pinned: T[] = [];
  const leaving: T[] = [];
  // Judging all of a large table would hold everything else up.
  for (const one of leastFirst(all)) {
    if (leaving.length === most) break;
    (isPinned(one) ? pinned : leaving).push(one);
  }
  return [...leaving, ...pinned].slice(0, most);
}

/** By the better of two ranks: the oldest has 0, and so has the busiest. */
function leastFirst<T extends UpstreamConnection>(all: readonly T[]): T[] {
  const rows = all.map((one) => ({ one, worth: 0 }));
  for (const [rank, row] of rows.toSorted((a, b) => a.one.openedMs - b.one.openedMs).entries()) row.worth = rank;
  const byUse = rows.toSorted((a, b) => b.one.requests - a.one.requests || b.one.bytes - a.one.bytes);
  for (const [rank, row] of byUse.entries()) row.worth = Math.min(row.worth, rank);
  return rows.toSorted((a, b) => b.worth - a.worth).map(({ one }) => one);
}
