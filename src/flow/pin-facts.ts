import type { Attempt } from '../model/exchange.ts';

/** How Envoy's clock maps to ours, ms. Infinite uncertainty: not at all. */
export interface ClockMapping {
  offsetMs: number;
  uncertaintyMs: number;
}

/** Of a stream that is gone, or told no time yet. Under it a connection to an endpoint that left is only draining. */
export const unknownClock: ClockMapping = { offsetMs: 0, uncertaintyMs: Number.POSITIVE_INFINITY };

/** When an attempt's connection was opened, our clock; absent where Envoy did not say how old it was. */
export function openedMs(attempt: Attempt, clock: ClockMapping): number | undefined {
  if (attempt.connectionAgeMs === undefined) return undefined;
  const sentMs = attempt.startMs + (attempt.firstUpstreamTxMs ?? 0);
  return sentMs - attempt.connectionAgeMs + clock.offsetMs;
}

/** When an attempt ended, our clock; `nowMs` where the clocks cannot be compared. */
export function endedMs(attempt: Attempt, clock: ClockMapping, nowMs: number): number {
  if (clock.uncertaintyMs === Number.POSITIVE_INFINITY) return nowMs;
  return attempt.startMs + (attempt.durationMs ?? 0) + clock.offsetMs;
}
