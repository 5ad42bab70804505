import type { Outcome, Phase, Pin } from '../../model/verdict.ts';

export const keptReasons = ['masked', 'exhausted', 'in_body', 'stale', 'stale_view', 'slow'] as const;
/** Why a trace that nobody sampled is kept. */
export type KeptReason = (typeof keptReasons)[number];

export interface KeepFacts {
  outcome: Outcome;
  failedPhase: Phase | undefined;
  pin: Pin | undefined;
  durationMs: number | undefined;
  /** An exchange that lasts longer is slow, ms. */
  slowMs: number;
}

/** What makes an exchange worth keeping, the first that holds. */
export function keptReason({ outcome, failedPhase, pin, durationMs, slowMs }: KeepFacts): KeptReason | undefined {
  if (outcome === 'masked' || outcome === 'exhausted') return outcome;
  if (failedPhase === 'in_body') return 'in_body';
  if (pin === 'stale' || pin === 'stale_view') return pin;
  return durationMs !== undefined && durationMs > slowMs ? 'slow' : undefined;
}

export type Decision = { kept: true; why: 'sampled' | KeptReason } | { kept: false; why: 'unsampled' | 'rate_limited' };

/** `takeToken` is asked only where a trace would be kept against its sampling. */
export function decide(sampled: boolean, reason: KeptReason | undefined, takeToken: () => boolean): Decision {
  if (sampled) return { kept: true, why: 'sampled' };
  if (reason === undefined) return { kept: false, why: 'unsampled' };
  return takeToken() ? { kept: true, why: reason } : { kept: false, why: 'rate_limited' };
}
