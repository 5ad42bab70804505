/** A time by which something must have happened. */
export interface Deadline {
  /** Aborted when it passes. */
  signal: AbortSignal;
  /** It happened: the deadline passes no more. May be called twice. */
  met(): void;
  /** Why something failed: because the deadline passed, or as it says itself. */
  reasonOf(error: unknown): unknown;
}

/** `missed`: the message of the error that tells that it passed. The process need not wait for it. */
export function startDeadline(ms: number, missed: string): Deadline {
  const passing = new AbortController();
  const late = new Error(missed);
  const timer = setTimeout(() => passing.abort(late), ms).unref();
  return {
    signal: passing.signal,
    met: () => clearTimeout(timer),
    reasonOf: (error) => (passing.signal.aborted ? late : error),
  };
}
