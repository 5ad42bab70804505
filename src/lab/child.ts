import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dieWithUs } from './cleanup.ts';

export interface Child {
  process: ChildProcess;
  /** What it wrote, its last 64 KiB. */
  logs: () => string;
  /** Why it is not there: it could not be started, or ended; `undefined` while it runs. */
  failure: () => Error | undefined;
  /** SIGTERM, then SIGKILL after two seconds; resolves when it is gone. May be called twice. */
  stop(): Promise<void>;
}

const keptLogChars = 65_536;

/** Starts a program that ends when this process does. `cwd`: where it may leave files. */
export function startChild(bin: string, args: readonly string[], cwd: string): Child {
  const child = spawn(bin, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd });
  dieWithUs(child);
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = error;
  });
  child.once('exit', (code, signal) => {
    failure ??= new Error(`it ended with ${signal ?? `exit code ${code}`}`);
  });
  return { process: child, logs: keepLogs(child), failure: () => failure, stop: () => stop(child) };
}

function keepLogs(child: ChildProcess): () => string {
  let kept = '';
  const keep = (chunk: Buffer) => {
    kept = (kept + chunk.toString()).slice(-keptLogChars);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  return () => kept;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const hard = setTimeout(() => child.kill('SIGKILL'), 2_000);
  await gone;
  clearTimeout(hard);
}
