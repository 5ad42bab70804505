import type { UpstreamConnection } from '../model/upstream-connection.ts';

/** Sorting for each one that does not fit would be quadratic: so a share of all leaves at once. */
const share = 1 / 20;

/**
 * Which connections leave a full table: neither the pinned, nor the oldest, nor the busiest, as long as there are
 * others. One in twenty, at least one.
 */
export function leastWorthy<T extends UpstreamConnection>(all: readonly T[], isPinned: (one: T) => boolean): T[] {
  const rankByAge = ranks(all, (a, b) => a.openedMs - b.openedMs);
  const rankByUse = ranks(all, (a, b) => b.requests - a.requests || b.bytes - a.bytes);
  const worth = new Map(
    all.map((one) => [one, isPinned(one) ? -1 : Math.min(rankByAge.get(one) ?? 0, rankByUse.get(one) ?? 0)]),
  );
  return all.toSorted((a, b) => (worth.get(b) ?? 0) - (worth.get(a) ?? 0)).slice(0, Math.ceil(all.length * share));
}

function ranks<T>(all: readonly T[], compare: (a: T, b: T) => number): Map<T, number> {
  return new Map(all.toSorted(compare).map((one, rank) => [one, rank]));
}
