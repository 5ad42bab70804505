import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the event loop is asked, ms. Node's figures include it. */
const resolutionMs = 20;

/** How late the event loop comes to what is due. */
export class LagMeter {
  readonly #histogram = monitorEventLoopDelay({ resolution: resolutionMs });

  constructor() {
    this.#histogram.enable();
  }

  /** The 99th percentile since the last call, ms; 0 before there is one. */
  takeMs(): number {
    const lagMs = this.#histogram.percentile(99) / 1e6 - resolutionMs;
    this.#histogram.reset();
    return Math.max(0, lagMs);
  }

  stop(): void {
    this.#histogram.disable();
  }
}
