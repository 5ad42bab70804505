import type { Flip } from '../../../endpoints/flips.ts';
import { type ClusterView, isStale } from '../../../model/view.ts';
import { endpointsAnswer } from '../answers.ts';
import type { Rooms } from '../build-rooms.ts';

/** Clusters whose changes are told, those that changed last first. */
const mostChanged = 200;
/** Addresses of one change that are named; the others are counted. */
const mostNamed = 5;

/** How each endpoint is used, and what changed in the lists. */
export function endpointsPart(rooms: Rooms) {
  const { discovery, books, ground } = rooms;
  const nowMs = ground.now();
  const { windowMs, truncated, endpoints } = endpointsAnswer(rooms, {});
  const changed = discovery
    .snapshot()
    .clusters()
    .map((view) => ({ view, flips: books.flips.of(view.cluster) }))
    .filter(({ flips }) => flips.length > 0)
    .toSorted((a, b) => (b.flips.at(-1)?.atMs ?? 0) - (a.flips.at(-1)?.atMs ?? 0));
  return {
    windowMs,
    truncated,
    rows: endpoints.map(
      ({ holders: _holders, drain: _drain, forgotten: _forgotten, listedBy: _listedBy, graceMs: _graceMs, ...row }) =>
        row,
    ),
    changes: changed.slice(0, mostChanged).map(({ view, flips }) => changesOf(view, flips, nowMs)),
  };
}

function changesOf(view: ClusterView, flips: readonly Flip[], nowMs: number) {
  const { cluster, source, subject } = view;
  return {
    cluster,
    source,
    subject,
    stale: isStale(view, nowMs),
    flips: flips.map(({ added, removed, ...flip }) => ({
      ...flip,
      added: added.slice(0, mostNamed),
      addedCount: added.length,
      removed: removed.slice(0, mostNamed),
      removedCount: removed.length,
    })),
  };
}
