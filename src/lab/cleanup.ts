import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Kills the child when this process exits, however it exits short of SIGKILL. Forgets it when it ends on its own. */
export function dieWithUs(child: ChildProcess): void {
  children.add(child);
  child.once('exit', () => children.delete(child));
}

/** A stack of things to undo. `run` undoes the latest first, all of them even if some fail, and may be called twice. */
export class Cleanup {
  readonly #steps: (() => unknown)[] = [];

  /** Adds a step; a promise that it returns is awaited. */
  defer(step: () => unknown): void {
    this.#steps.push(step);
  }

  /** Registers the closing of a resource and hands it back: `const dns = cleanup.use(await startDns())`. */
  use<T extends { close(): unknown }>(resource: T): T {
    this.defer(() => resource.close());
    return resource;
  }

  /** Throws an `AggregateError` of what failed, after every step had its turn. */
  async run(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'cleaning up failed');
  }
}
