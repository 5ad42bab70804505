import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seriesKind } from '../../src/emit/metrics/series-kind.ts';
import { SeriesTable } from '../../src/emit/metrics/series-table.ts';
import { metrics } from '../../src/emit/names.ts';
import { reporter } from '../support/entries.ts';

const use = fc.record({
  workload: fc.integer({ min: 0, max: 8 }),
  cluster: fc.integer({ min: 0, max: 12 }),
  endpoint: fc.integer({ min: 0, max: 12 }),
  waitMs: fc.nat({ max: 40_000 }),
});

describe('the table of series', () => {
  it('never grows past its bounds, and counts every observation once, whatever comes', () => {
    fc.assert(
      fc.property(fc.array(use, { maxLength: 300 }), (uses) => {
        let dropped = 0;
        let nowMs = 0;
        const limits = { reporters: 3, clusters: 5, endpoints: 7, idleMs: 60_000 };
        const table = new SeriesTable(limits, { onOverflow: () => undefined, onNewCluster: () => undefined });
        let before = 0;
        for (const { workload, cluster, endpoint, waitMs } of uses) {
          nowMs += waitMs;
          const scope = table.cluster({ ...reporter, workload: `w${workload}` }, `c${cluster}`, nowMs);
          const place = table.endpoint(scope, `10.0.0.${endpoint}:80`, nowMs);
          const held = total(table);
          dropped += before - held;
          place.add(seriesKind(metrics.attempts), nowMs);
          before = held + 1;
          expect(total(table)).toBe(before);
        }
        const scopes = [...table.scopes()];
        // 5 clusters, 3 + 1 reporters' others, each with an "other" endpoint, and 7 endpoints.
        expect(scopes.length).toBeLessThanOrEqual(2 * (5 + 4) + 7);
        expect(total(table) + dropped).toBe(uses.length);
      }),
    );
  });
});

function total(table: SeriesTable): number {
  let sum = 0;
  for (const scope of table.scopes()) for (const series of scope.series()) sum += 'value' in series ? series.value : 0;
  return sum;
}
