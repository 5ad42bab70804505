import { SidelightError } from '../lib/errors.ts';

/** Tells of each bound that was reached, once: what it refuses may come at the rate of requests. */
export class Bounds {
  readonly #onError: (error: SidelightError) => void;
  readonly #told = new Set<string>();

  constructor(onError: (error: SidelightError) => void) {
    this.#onError = onError;
  }

  /** Something was refused. `bound`: the field of the config. */
  reached(bound: string, most: number, refused: string): false {
    if (!this.#told.has(bound)) {
      this.#told.add(bound);
      this.#onError(
        new SidelightError('bound_reached', { path: bound, value: refused, expected: `no more than ${most}` }),
      );
    }
    return false;
  }
}
