import { type FSWatcher, watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { SidelightError } from '../lib/errors.ts';
import { formatProblem, type Problem } from '../lib/yaml-check.ts';
import { parseEndpointsFile } from './endpoints-file.ts';

export interface FileSourceOptions {
  path: string;
  /** Time between two looks at the file, ms; an event of the file system makes one at once. */
  pollMs: number;
  now: Clock;
  /** The file is good; called at every look, also when it did not change. */
  onGood(clusters: ReadonlyMap<string, readonly string[]>, atMs: number): void;
  /** The file is bad; called once per different error. */
  onBad(error: SidelightError): void;
}

/** Parsing one of this size takes about a second, and holds up all else. */
const maxFileBytes = 1 << 20;
/** An editor writes in several steps, each with an event. */
const settleMs = 50;

/** Watches one file, by events of its folder (a ConfigMap swaps a link there) and by looking at it now and then. */
export class FileSource {
  readonly #options: FileSourceOptions;
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #lookIsNear = false;
  /** The state of the file that was read last. */
  #signature: string | undefined;
  /** What it said; `undefined`: nothing that fits. */
  #clusters: ReadonlyMap<string, readonly string[]> | undefined;
  #lastError: string | undefined;

  constructor(options: FileSourceOptions) {
    this.#options = options;
  }

  /** Resolves after the first look. A bad file is told by `onBad`, not thrown. */
  async start(): Promise<void> {
    this.#watchFolder();
    await this.#look();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#watcher?.close();
  }

  #watchFolder(): void {
    try {
      this.#watcher = watch(path.dirname(this.#options.path), { persistent: false }, () => this.#lookSoon());
      this.#watcher.on('error', () => this.#watcher?.close());
    } catch {
      // The folder is not there, or the system has no watches left: looking now and then is enough.
    }
  }

  /** Further events do not put the look off: the folder may be a busy one. */
  #lookSoon(): void {
    if (this.#lookIsNear) return;
    this.#lookIsNear = true;
    this.#lookIn(settleMs);
  }

  #lookIn(delayMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#look(), delayMs).unref();
  }

  async #look(): Promise<void> {
    this.#lookIsNear = false;
    try {
      const signature = await this.#check();
      if (signature !== this.#signature) await this.#read(signature);
      this.#good();
    } catch (cause) {
      this.#bad(cause instanceof SidelightError ? cause : this.#error('file_unreadable', undefined, cause));
    }
    if (!this.#lookIsNear) this.#lookIn(this.#options.pollMs);
  }

  /** A text that differs when the file does. Links are followed. */
  async #check(): Promise<string> {
    const stats = await stat(this.#options.path);
    if (!stats.isFile()) throw this.#error('file_unreadable', 'a file');
    if (stats.size > maxFileBytes) throw this.#error('file_invalid', `at most ${maxFileBytes} bytes`);
    return `${stats.ino} ${stats.ctimeMs} ${stats.mtimeMs} ${stats.size}`;
  }

  async #read(signature: string): Promise<void> {
    const parsed = parseEndpointsFile(await readFile(this.#options.path, 'utf8'));
    // Signed as it was before reading: if it changed meanwhile, the next look reads it again.
    this.#signature = signature;
    this.#clusters = parsed.ok ? parsed.value : undefined;
    if (!parsed.ok)
      throw new SidelightError('file_invalid', { path: this.#options.path, cause: firstOf(parsed.problems) });
  }

  #error(code: 'file_unreadable' | 'file_invalid', expected: string | undefined, cause?: unknown): SidelightError {
    return new SidelightError(code, { path: this.#options.path, expected, cause });
  }

  #good(): void {
    if (this.#stopped || this.#clusters === undefined) return;
    this.#lastError = undefined;
    this.#options.onGood(this.#clusters, this.#options.now());
  }

  #bad(error: SidelightError): void {
    if (this.#stopped || error.message === this.#lastError) return;
    this.#lastError = error.message;
    this.#options.onBad(error);
  }
}

function firstOf([first, ...more]: readonly Problem[]): Error {
  const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return new Error(`${first === undefined ? 'nothing' : formatProblem(first)}${others}`);
}
