import { rename } from 'node:fs/promises';
import type { z } from 'zod';
import type { Clock } from '../lib/clock.ts';
import { SidelightError } from '../lib/errors.ts';
import { fitBoth } from './fit.ts';
import { type Contents, readState, stateVersion } from './read-state.ts';
import { writeWhole } from './write-state.ts';

export interface StateFileOptions<D extends readonly unknown[], P extends readonly unknown[]> {
  path: string;
  /** What the lists must look like. */
  schemas: { discovery: z.ZodType<D>; pins: z.ZodType<P> };
  /** What is to be written now: each list with what is most worth keeping first. */
  collect(): { discovery: D; pins: P };
  now: Clock;
  /** Called once per different error, and again when it comes back after a good write. */
  onError(error: SidelightError): void;
  /** The least time between two writes, ms; 5 s unless told otherwise. */
  pauseMs?: number;
  /** Of the file; 8 MiB unless told otherwise. */
  maxBytes?: number;
}

const longestFileBytes = 8 * 1024 * 1024;
const shortestPauseMs = 5000;
/** For all but the lists. */
const frameBytes = 256;

/** Two lists in a file of their own, kept over a restart. Whatever goes wrong is told, and harms nothing. */
export class StateFile<D extends readonly unknown[], P extends readonly unknown[]> {
  readonly #options: StateFileOptions<D, P>;
  readonly #maxBytes: number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #writtenMs = Number.NEGATIVE_INFINITY;
  #stopped = false;
  #toldError: string | undefined;
  #toldFull = false;

  constructor(options: StateFileOptions<D, P>) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? longestFileBytes;
  }

  /**
   * What the last run wrote; `undefined`: nothing that can be used. A file that cannot be used is renamed to
   * `NAME.set-aside-TIME`. To be called before the first `touch`.
   */
  async read(): Promise<Contents<D, P> | undefined> {
    const { path, schemas, now } = this.#options;
    try {
      const read = await readState(path, schemas, { maxBytes: this.#maxBytes, nowMs: now() });
      if (read.kind === 'good') return read.contents;
      if (read.kind === 'no_file') this.#tell(new SidelightError('state_file_failed', { path, expected: 'a file' }));
      if (read.kind === 'bad') await this.#setAside(read.reason);
    } catch (cause) {
      this.#tell(new SidelightError('state_file_failed', { path, cause }));
    }
    return undefined;
  }

  /** Something changed: it is written soon, at most once in `pauseMs`. O(1). */
  touch(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    const pauseMs = this.#options.pauseMs ?? shortestPauseMs;
    const sinceMs = this.#options.now() - this.#writtenMs;
    // A clock that was set back must not hold a write up for hours.
    const waitMs = sinceMs < 0 || sinceMs > pauseMs ? pauseMs : pauseMs - sinceMs;
    this.#timer = setTimeout(() => this.#writeSoon(), waitMs).unref();
  }

  /** Writes a last time; nothing is written after it. Never rejects. */
  async stop(): Promise<void> {
    if (this.#stopped) return this.#writing;
    this.#stopped = true;
    this.#writeSoon();
    await this.#writing;
  }

  #writeSoon(): void {
    clearTimeout(this.#timer);
    this.#writing = this.#writeAfter(this.#writing);
  }

  async #writeAfter(earlier: Promise<void>): Promise<void> {
    await earlier;
    const { path, now } = this.#options;
    this.#timer = undefined;
    this.#writtenMs = now();
    try {
      await writeWhole(path, this.#text(this.#writtenMs));
      this.#toldError = undefined;
    } catch (cause) {
      this.#tell(new SidelightError('state_file_failed', { path, cause }));
    }
  }

  #text(savedAtMs: number): string {
    const lists = this.#options.collect();
    const { first, second } = fitBoth(lists.discovery, lists.pins, this.#maxBytes - frameBytes);
    this.#tellLeftOut(first.leftOut + second.leftOut);
    const head = `"version":${stateVersion},"savedAtMs":${savedAtMs}`;
    return `{${head},"discovery":[${first.json.join()}],"pins":[${second.json.join()}]}\n`;
  }

  async #setAside(reason: string): Promise<void> {
    const { path, now } = this.#options;
    const aside = `${path}.set-aside-${new Date(now()).toISOString().replaceAll(':', '-')}`;
    await rename(path, aside);
    this.#tell(
      new SidelightError('state_file_set_aside', { path, expected: `what can be used, but ${reason}`, value: aside }),
    );
  }

  #tellLeftOut(count: number): void {
    if (count > 0 && !this.#toldFull) {
      const expected = `at most ${this.#maxBytes} bytes; the oldest are left out`;
      const value = `${count} entries more`;
      this.#options.onError(new SidelightError('bound_reached', { path: this.#options.path, value, expected }));
    }
    this.#toldFull = count > 0;
  }

  #tell(error: SidelightError): void {
    if (error.message === this.#toldError) return;
    this.#toldError = error.message;
    this.#options.onError(error);
  }
}
