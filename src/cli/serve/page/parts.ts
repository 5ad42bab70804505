import type { PagePart } from '../../../admin/viewers.ts';
import { isStale } from '../../../model/view.ts';
import type { Rooms } from '../build-rooms.ts';
import { coveragePart } from './coverage.ts';
import { endpointsPart } from './endpoints.ts';
import { pinsPart } from './pins.ts';

/** Rows of one part: what a person pages through. */
const mostClusters = 1000;
const mostExchanges = 150;

/** Each part of the page as it is now; docs/reference/api.md has their fields. */
export function pageParts(rooms: Rooms, version: string): Record<PagePart, () => unknown> {
  return {
    coverage: () => coveragePart(rooms, version),
    clusters: () => clustersPart(rooms),
    pins: () => pinsPart(rooms),
    endpoints: () => endpointsPart(rooms),
    exchanges: () => ({ exchanges: rooms.emit.recent({ limit: mostExchanges }) }),
  };
}

/** The counts of each cluster, as each kind of proxy sees it, the one heard of last first. */
function clustersPart({ emit, discovery, ground }: Rooms) {
  const nowMs = ground.now();
  const view = discovery.snapshot();
  const rows = emit.tally?.rows(nowMs) ?? [];
  return {
    truncated: rows.length > mostClusters,
    rows: rows.slice(0, mostClusters).map((row) => {
      const listing = row.cluster === undefined ? undefined : view.cluster(row.cluster);
      return {
        ...row,
        listing: listing && { source: listing.source, listed: listing.listed.size, stale: isStale(listing, nowMs) },
      };
    }),
  };
}
