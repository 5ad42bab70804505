import type { Comeback } from './knowledge.ts';

/** Shorter makes no sense: proxies and Sidelight do not ask at the same moment. */
const shortestMs = 10_000;

/** A name whose endpoints came back in this many answers within this time rotates; a flip and its undoing is less. */
const rotationAnswers = 3;
const rotationWindowMs = 600_000;
/** A longer absence was a failover that ended, not a rotation. */
const longestAbsenceMs = 300_000;

/**
 * How long an endpoint that leaves now is only draining, ms. max(10 s, TTL + refresh): a proxy that asked just before
 * the change believes the old answer for so long. Where answers rotate (a subset of many addresses each time),
 * twice the longest absence that ended, for what came back may come back again.
 */
export function derivedGraceMs(facts: {
  ttlMs: number;
  refreshMs: number;
  comebacks: readonly Comeback[];
  nowMs: number;
}): number {
  const recent = facts.comebacks.filter(
    ({ atMs, absentMs }) => facts.nowMs - atMs <= rotationWindowMs && absentMs <= longestAbsenceMs,
  );
  const rotationMs = recent.length < rotationAnswers ? 0 : 2 * Math.max(...recent.map(({ absentMs }) => absentMs));
  return Math.max(shortestMs, facts.ttlMs + facts.refreshMs, rotationMs);
}
