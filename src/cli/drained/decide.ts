import type { Blindness, DrainState, DrainVerdict, HeldConnection } from '../../judge/drain-facts.ts';

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
  /** Since when every verdict was `may_be_open`; absent: the last was not. */
  mayBeOpenSinceMs: number | undefined;
}

/** What is open and changes its log stream is told again by then: the shipped configs tell of it every 5 s. */
const toldAgainMs = 7000;

/** Whether to end, and how; `undefined`: go on. */
export function decide({ state, openUntilMs = 0, holders }: DrainVerdict, clocks: Clocks): Decision | undefined {
  const { nowMs, deadlineMs, quietForMs, blindSinceMs, mayBeOpenSinceMs = nowMs } = clocks;
  const exitCode = exitCodes[state];
  const isUseless =
    state === 'drained' ||
    // Nothing is heard when an idle connection closes: only time ends this.
    (state === 'may_be_open' &&
      openUntilMs > deadlineMs &&
      (nowMs - mayBeOpenSinceMs >= toldAgainMs || !holders.some(mayBeToldAgain))) ||
    (state === 'blind' && blindSinceMs !== undefined && nowMs - blindSinceMs >= quietForMs);
  if (isUseless) return { exitCode, endedBy: 'verdict' };
  return nowMs >= deadlineMs ? { exitCode, endedBy: 'timeout' } : undefined;
}

/** A TCP connection, or a request, of which nothing is heard although its proxy has a log stream. */
function mayBeToldAgain({ state, layer, mayBeOpenUntilMs, reporterConnected }: HeldConnection): boolean {
  return state === 'unseen' && reporterConnected && (layer === 'tcp' || mayBeOpenUntilMs === undefined);
}

/** Whether a verdict is blind for something that waiting does not cure. */
export function isBlindForGood({ state, blind }: DrainVerdict, deadlineMs: number): boolean {
  return state === 'blind' && blind.some((one) => !passes(one, deadlineMs));
}

function passes({ passesAtMs }: Blindness, deadlineMs: number): boolean {
  return passesAtMs !== undefined && passesAtMs <= deadlineMs;
}
