import { expect, it } from 'vitest';
import { reportersView } from '../../src/cli/serve/api-views.ts';
import type { CoveredReporter } from '../../src/flow/coverage.ts';
import type { ExpectedReporters } from '../../src/model/expected-reporter.ts';
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
    const { truncated, reporters } = reportersView(rows(count), undefined, 2000);
    return [truncated, reporters.length];
  };
  expect([shown(10_000), shown(10_001)]).toEqual([
    [false, 10_000],
    [true, 10_000],
  ]);
});

it('says who should report and does not, and whether more should', () => {
  const list: ExpectedReporters = {
    subject: 'pods of shop',
    pods: ['shop-1', 'shop-2', 'shop-3'].map((pod) => ({ namespace: 'shop', pod })),
    lastAnswerMs: 1000,
    staleAfterMs: 500,
    lastError: undefined,
  };
  const missing = [{ namespace: 'shop', pod: 'shop-3' }];
  const shown = (nowMs: number) => reportersView([], { list, missing }, nowMs).expected;
  expect(shown(1500)).toMatchObject({ pods: 3, reporting: 2, missing, stale: false, truncated: false });
  expect(shown(1501)).toMatchObject({ stale: true });
  expect(reportersView([], undefined, 0)).toMatchObject({ expected: undefined });
});
