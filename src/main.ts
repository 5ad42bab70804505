import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createProgram } from './cli/program.ts';

// The same relative path from src/ and, in the installed package, from dist/.
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/**
 * Resolves at the first of them with its name; a second one has its usual effect. `disconnect` comes only to a process
 * that was started with a channel to its parent (the demo's service): the parent is gone, however it went.
 */
function stopped(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    process.once('disconnect', () => resolve('disconnect'));
  });
}

/**
 * Not by the exit code alone: the timers of an export to a dead OTLP endpoint would hold the process for seconds. What a
 * pipe has not taken yet is waited for, as Node would drop it: a pipe holds 64 KiB. Who stops reading ends the wait.
 */
function exit(code: number): void {
  const end = () => process.exit(code);
  if (process.stdout.writableLength === 0) end();
  process.stdout.once('error', end);
  process.stdout.write('', end);
}

const program = createProgram(
  {
    version,
    env: process.env,
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    out: (text) => process.stdout.write(`${text}\n`),
    err: (text) => process.stderr.write(`${text}\n`),
    stopped,
    self: { node: process.execPath, flags: process.execArgv, entry: fileURLToPath(import.meta.url) },
    colour: process.stdout.isTTY && process.env['NO_COLOR'] === undefined,
  },
  exit,
);
await program.parseAsync(process.argv);
