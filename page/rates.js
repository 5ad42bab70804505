/*
 * The rates of a cluster from its counts: the same as docs/reference/metrics.md computes in PromQL. Left out of each:
 * aborted, unknown, local client errors, and masked exchanges in which a hedge won.
 */

/** Each rate is 0-1; absent where nothing counts in it. `maskedMs`: what one masked exchange cost on average.
 * @param {Partial<Record<string, number>>} counts */
export function ratesOf(counts) {
  const { ok = 0, masked = 0, hedged = 0, exhausted = 0, failed = 0, aborted = 0, unknown = 0 } = counts;
  const { localSuccess = 0, localClientError = 0, localServerError = 0 } = counts;
  const { attempts = 0, attempted = 0, attemptsOk = 0, attemptsFailed = 0, maskedMs = 0, retried = 0 } = counts;
  const hidden = masked - hedged;
  const firstTry = ok + localSuccess;
  const counted = firstTry + hidden + exhausted + failed + localServerError;
  const all = ok + masked + exhausted + failed + aborted + unknown + localSuccess + localClientError + localServerError;
  return {
    all,
    counted,
    effective: share(firstTry + hidden, counted),
    firstTry: share(firstTry, counted),
    actual: share(attemptsOk, attemptsOk + attemptsFailed),
    masked: share(hidden, counted),
    aborted: share(aborted, all),
    amplification: share(attempts, attempted),
    maskedMs: share(maskedMs, hidden),
    maskedTotalMs: maskedMs,
    maskedCount: hidden,
    failedCount: exhausted + failed + localServerError,
    abortedCount: aborted,
    unknownCount: unknown,
    retriedCount: retried,
  };
}

/** @param {number} part @param {number} whole */
function share(part, whole) {
  return whole > 0 ? part / whole : undefined;
}
