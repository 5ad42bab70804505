import type { Outcome, Phase, Pin } from '../../model/verdict.ts';

export const keptReasons = ['masked', 'exhausted', 'aborted', 'in_body', 'stale', 'stale_view', 'slow'] as const;
/** Why a trace that nobody sampled is kept. */
export type KeptReason = (typeof keptReasons)[number];

export interface KeepFacts {
  outcome: Outcome;
  /** The caller left when an attempt had failed already. */
  failedBeforeAbort: boolean;
  failedPhase: Phase | undefined;
  pin: Pin | undefined;
  /** The config expects pins of the cluster: they are no reason. */
  pinExpected: boolean;
  durationMs: number | undefined;
  /** An exchange that lasts longer is slow, ms. */
  slowMs: number;
}

/** Whether a pin is one to wonder about: its endpoint left, and no grace is left either. */
export function isStale(pin: Pin): pin is 'stale' | 'stale_view' {
  return pin === 'stale' || pin === 'stale_view';
}

/** What makes an exchange worth keeping, the first that holds. */
export function keptReason({
  outcome,
  failedBeforeAbort,
  failedPhase,
  pin,
  pinExpected,
  durationMs,
  slowMs,
}: KeepFacts): KeptReason | undefined {
  if (outcome === 'masked' || outcome === 'exhausted') return outcome;
  if (outcome === 'aborted' && failedBeforeAbort) return outcome;
  if (failedPhase === 'in_body') return 'in_body';
  if (pin !== undefined && isStale(pin) && !pinExpected) return pin;
  return durationMs !== undefined && durationMs > slowMs ? 'slow' : undefined;
}

export type Decision = { kept: true; why: 'sampled' | KeptReason } | { kept: false; why: 'unsampled' | 'rate_limited' };

/** `takeToken` is asked only where a trace would be kept against its sampling. */
export function decide(sampled: boolean, reason: KeptReason | undefined, takeToken: () => boolean): Decision {
  if (sampled) return { kept: true, why: 'sampled' };
  if (reason === undefined) return { kept: false, why: 'unsampled' };
  return takeToken() ? { kept: true, why: reason } : { kept: false, why: 'rate_limited' };
}
