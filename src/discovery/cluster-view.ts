import type { ClusterView, SourceKind } from '../model/view.ts';
import type { Knowledge } from './knowledge.ts';

/** What a cluster's view adds to the knowledge of its subject. */
export interface ViewSettings {
  staleAfterMs: number;
  sameAsProxy: boolean;
  /** As configured; `undefined`: as derived from TTL and refresh. */
  graceMs: number | undefined;
}

/** One cluster's view of what is known of a subject. */
export function clusterView(
  names: { cluster: string; source: SourceKind; subject: string },
  { firstAnswerMs, lastAnswerMs, listed, left, graceMs, changes, lastError }: Knowledge,
  settings: ViewSettings,
): ClusterView {
  return {
    ...names,
    firstAnswerMs,
    lastAnswerMs,
    staleAfterMs: settings.staleAfterMs,
    graceMs: settings.graceMs ?? graceMs,
    sameAsProxy: settings.sameAsProxy,
    listed,
    get left() {
      return left.byEndpoint;
    },
    changes,
    lastError,
  };
}
