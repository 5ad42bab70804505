import { expect, it } from 'vitest';
import { reportersView } from '../../src/cli/serve/api-views.ts';
import type { CoveredReporter } from '../../src/flow/coverage.ts';
import { reporter } from '../support/entries.ts';

it('says when there are more reporters than it lists, and lists thousands', () => {
  const rows = (count: number) =>
    Array.from(
      { length: count },
      (_, id): CoveredReporter => ({
        reporter: { ...reporter, nodeId: `node-${id}` },
        profile: 'observe',
        configVersion: 2,
        streams: 1,
        firstSeenMs: 1000,
        lastEntryMs: 1000,
      }),
    );
  const shown = (count: number) => {
    const { truncated, reporters } = reportersView(rows(count), 2000);
    return [truncated, reporters.length];
  };
  expect([shown(10_000), shown(10_001)]).toEqual([
    [false, 10_000],
    [true, 10_000],
  ]);
});
