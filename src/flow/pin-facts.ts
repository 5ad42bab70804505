import type { Attempt } from '../model/exchange.ts';

/** How Envoy's clock maps to ours, ms. */
export interface ClockMapping {
  offsetMs: number;
  uncertaintyMs: number;
}

/** When an attempt's connection was opened, our clock; absent where Envoy did not say how old it was. */
export function openedMs(attempt: Attempt, clock: ClockMapping): number | undefined {
  if (attempt.connectionAgeMs === undefined) return undefined;
  const sentMs = attempt.startMs + (attempt.firstUpstreamTxMs ?? 0);
  return sentMs - attempt.connectionAgeMs + clock.offsetMs;
}

/** When an attempt ended, our clock. */
export function endedMs(attempt: Attempt, clock: ClockMapping): number {
  return attempt.startMs + (attempt.durationMs ?? 0) + clock.offsetMs;
}
