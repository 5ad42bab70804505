import type { ClosedBy } from './closed-by.ts';
import type { UpstreamConnection } from './upstream-connection.ts';
import type { Pin } from './verdict.ts';
import type { SourceKind } from './view.ts';

/** What happens in the life of a pin. The log's event is `pin.` and the name. docs/reference/verdicts.md. */
export const pinEvents = [
  /** Its endpoint left. */
  'opened',
  'stale',
  'stale_view',
  /** It is over, or was lost sight of; `how` says which. */
  'cleared',
] as const;
export type PinEvent = (typeof pinEvents)[number];

/** How a pin was over. */
export const clearedHows = [
  /** The connection's end was logged, by whom if Envoy said it. */
  'closed',
  /** Envoy's own counters have no such connection any more. */
  'gone',
  /** Nothing was heard of it for `pins.quietMs`. It may still be open: Envoy is silent when an idle one closes. */
  'quiet',
  /** Its endpoint is listed again. */
  'relisted',
  /** Its log stream ended, and none here went on telling of it; another replica may. */
  'moved',
  /** The table of connections had no room. */
  'evicted',
] as const;
export type ClearedHow = (typeof clearedHows)[number];

/** A connection whose endpoint left. Times epoch ms, our clock. */
export interface PinLife {
  connection: UpstreamConnection;
  /** `draining`, `stale` or `stale_view`; as it was last, where it is over. */
  pin: Pin;
  leftAtMs: number;
  source: SourceKind | undefined;
  /** When it was first seen as a pin here. */
  sinceMs: number;
}

export interface ClearedPin extends PinLife {
  clearedMs: number;
  how: ClearedHow;
  by: ClosedBy | undefined;
}
