import type { ConnectionEnd, UpstreamConnection } from '../assemble/connection-table.ts';
import type { PinVerdict } from '../model/verdict.ts';

/** A pin that is over. Times epoch ms, our clock. */
export interface ClearedPin {
  connection: UpstreamConnection;
  /** As it last was. */
  verdict: PinVerdict;
  clearedMs: number;
  /** `closed` is known; `quiet` only means that no request used it any more. */
  how: 'closed' | 'quiet';
}

/** The latest pins that cleared. Bounded, oldest out. */
export class PinHistory {
  readonly #max: number;
  readonly #cleared: ClearedPin[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Remembers a connection that was pinned when it ended; any other is none of its business. One that the table or the
   * stream let go of may still be in use: another stream, or replica, tells of it next.
   */
  ended(
    connection: UpstreamConnection,
    how: ConnectionEnd,
    verdict: PinVerdict,
    nowMs: number,
  ): ClearedPin | undefined {
    if (verdict.leftAtMs === undefined || how === 'evicted' || how === 'stream_ended') return undefined;
    const cleared = { connection, verdict, clearedMs: nowMs, how };
    this.#cleared.push(cleared);
    if (this.#cleared.length > this.#max) this.#cleared.shift();
    return cleared;
  }

  /** Oldest first. */
  cleared(): readonly ClearedPin[] {
    return this.#cleared;
  }
}
