/** Shorter makes no sense: proxies and Sidelight do not ask at the same moment. */
const shortestMs = 10_000;

/** How long an address that a rotating name once gave is believed to be in use by rights. */
const rotationWindowMs = 600_000;

/** How long endpoints that leave by an answer are only draining, ms. */
export interface Grace {
  graceMs: number;
  /** Where answers keep replacing endpoints. */
  rotatingGraceMs: number;
}

/**
 * max(10 s, TTL + refresh): a proxy that asked just before the change believes the old answer for so long. A name that
 * answers with a subset of its addresses, another each time, says nothing by leaving one out: there it is 10 min.
 */
export function dnsGrace(ttlMs: number, refreshMs: number): Grace {
  const graceMs = Math.max(shortestMs, ttlMs + refreshMs);
  return { graceMs, rotatingGraceMs: Math.max(graceMs, rotationWindowMs) };
}

/** A file says what is meant: it does not rotate, however often it is edited. */
export const fileGrace: Grace = { graceMs: shortestMs, rotatingGraceMs: shortestMs };
