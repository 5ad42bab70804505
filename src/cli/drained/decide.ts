import type { Blindness, DrainState, DrainVerdict } from '../../judge/drained.ts';

export interface Decision {
  exitCode: number;
  /** `verdict`: waiting on would change nothing. `timeout`. Or the name of a signal. */
  endedBy: string;
}

/** Exit codes of `sidelight drained`; a signal gives 128 and its number. docs/drained.md. */
export const exitCodes: Record<DrainState, number> = {
  drained: 0,
  in_use: 1,
  still_listed: 1,
  blind: 3,
  may_be_open: 4,
};
export const wrongArguments = 2;

export interface Clocks {
  nowMs: number;
  deadlineMs: number;
  quietForMs: number;
  /** Since when every verdict was blind for something that does not pass in time; absent: the last was not. */
  blindSinceMs: number | undefined;
}

/** Whether to end, and how; `undefined`: go on. */
export function decide({ state, openUntilMs = 0 }: DrainVerdict, clocks: Clocks): Decision | undefined {
  const { nowMs, deadlineMs, quietForMs, blindSinceMs } = clocks;
  const exitCode = exitCodes[state];
  const isUseless =
    state === 'drained' ||
    // Nothing is heard when an idle connection closes: only time ends this.
    (state === 'may_be_open' && openUntilMs > deadlineMs) ||
    (state === 'blind' && blindSinceMs !== undefined && nowMs - blindSinceMs >= quietForMs);
  if (isUseless) return { exitCode, endedBy: 'verdict' };
  return nowMs >= deadlineMs ? { exitCode, endedBy: 'timeout' } : undefined;
}

/** Whether a verdict is blind for something that waiting does not cure. */
export function isBlindForGood({ state, blind }: DrainVerdict, deadlineMs: number): boolean {
  return state === 'blind' && blind.some((one) => !passes(one, deadlineMs));
}

function passes({ passesAtMs }: Blindness, deadlineMs: number): boolean {
  return passesAtMs !== undefined && passesAtMs <= deadlineMs;
}
