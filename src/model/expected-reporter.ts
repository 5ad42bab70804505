/** A pod whose proxy should report. */
export interface ExpectedReporter {
  namespace: string;
  pod: string;
}

/** Which proxies should report, as their source lists them. Immutable, replaced whole. Times epoch ms, our clock. */
export interface ExpectedReporters {
  /** What was asked, in words: namespaces and selectors. */
  subject: string;
  pods: readonly ExpectedReporter[];
  /** Of the list that is oldest; `undefined`: not all were answered yet. */
  lastAnswerMs: number | undefined;
  /** A list whose last answer is older than this may lack some. */
  staleAfterMs: number;
  /** The last failure, in words; absent after a good answer. */
  lastError: string | undefined;
}

/** By what a pod is told from others. */
export function podKey({ namespace, pod }: ExpectedReporter): string {
  return `${namespace}/${pod}`;
}
