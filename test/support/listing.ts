import type { ClusterView, DiscoveryView } from '../../src/model/view.ts';

/** A list of endpoints, all there from the beginning. */
export function listing(...endpoints: string[]): ReadonlyMap<string, number> {
  return new Map(endpoints.map((one) => [one, 0]));
}

/** A view in which cluster `app` alone has a source, if it has a list. */
export function viewOfApp(
  listed: ReadonlyMap<string, number> | undefined,
  earlier?: NonNullable<ClusterView['earlier']>,
): DiscoveryView {
  const app = listed && {
    cluster: 'app',
    source: 'dns' as const,
    subject: 'app.test',
    firstAnswerMs: 0,
    lastAnswerMs: 0,
    staleAfterMs: 60_000,
    graceMs: 10_000,
    sameAsProxy: true,
    listed,
    left: new Map<string, number>(),
    changes: { added: 0, removed: 0 },
    lastError: undefined,
    ...(earlier && { earlier }),
  };
  const clusters = app === undefined ? [] : [app];
  return {
    cluster: (name) => clusters.find(({ cluster }) => cluster === name),
    clusters: () => clusters,
    proxy: () => undefined,
    proxies: () => [],
  };
}
