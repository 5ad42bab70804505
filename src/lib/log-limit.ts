const windowMs = 1000;

/** Lets at most N lines per second and event name through, and remembers how many it held back. */
export class LogLimit {
  readonly #linesPerSecond: number;
  readonly #windows = new Map<string, { startMs: number; lines: number; suppressed: number }>();

  constructor(linesPerSecond: number) {
    this.#linesPerSecond = linesPerSecond;
  }

  /**
   * Whether this line may pass, and how many of the same event were held back in the second before it.
   * `nowMs`: epoch ms. A clock that is set back opens a new second.
   */
  admit(event: string, nowMs: number): { passes: boolean; suppressedBefore: number } {
    const window = this.#windows.get(event);
    if (window === undefined || nowMs >= window.startMs + windowMs || nowMs < window.startMs) {
      this.#windows.set(event, { startMs: nowMs, lines: 1, suppressed: 0 });
      return { passes: true, suppressedBefore: window?.suppressed ?? 0 };
    }
    if (window.lines < this.#linesPerSecond) {
      window.lines += 1;
      return { passes: true, suppressedBefore: 0 };
    }
    window.suppressed += 1;
    return { passes: false, suppressedBefore: 0 };
  }

  /** What was held back and not yet told, by event; it counts as told from now on. */
  takeSuppressed(): [event: string, lines: number][] {
    const taken: [string, number][] = [];
    for (const [event, window] of this.#windows) {
      if (window.suppressed > 0) taken.push([event, window.suppressed]);
      window.suppressed = 0;
    }
    return taken;
  }
}
