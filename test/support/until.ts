import { setTimeout as sleep } from 'node:timers/promises';

/** Looks again until it holds; throws after `withinMs` with what was waited for. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = 15_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    await sleep(25);
  }
}
