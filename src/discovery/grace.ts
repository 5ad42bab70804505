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

/** A list that says what is meant, a file or a proxy's own: it does not rotate, however often it is edited. */
export const fileGrace: Grace = { graceMs: shortestMs, rotatingGraceMs: shortestMs };

/**
 * From the API server an endpoint's leaving goes to a control plane, which may hold it back to send more at once (istiod:
 * 10 s at most, PILOT_DEBOUNCE_MAX), and then to thousands of proxies.
 */
export const kubernetesGrace: Grace = { graceMs: 15_000, rotatingGraceMs: 15_000 };

/** The longest TTL of an answer that stayed the same, and of its latest part. */
export interface HeldTtl {
  longestMs: number;
  /** When that one was last told, epoch ms. */
  toldMs: number;
  /** The longest told since. */
  sinceMs: number;
}

export const noTtl: HeldTtl = { longestMs: 0, toldMs: 0, sinceMs: 0 };

/**
 * How long a proxy may hold an answer: a caching resolver tells us 60, 59, … 1, and may have told the proxy 60. One that
 * was told longer ago than itself is over: who lowers a TTL before a cut-over has a short grace once the old one ran out.
 */
export function holdTtl({ longestMs, toldMs, sinceMs }: HeldTtl, ttlMs: number, atMs: number): HeldTtl {
  if (ttlMs >= longestMs) return { longestMs: ttlMs, toldMs: atMs, sinceMs: 0 };
  const since = Math.max(sinceMs, ttlMs);
  if (atMs > toldMs + longestMs) return { longestMs: since, toldMs: atMs, sinceMs: 0 };
  return { longestMs, toldMs, sinceMs: since };
}
