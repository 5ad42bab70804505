import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, startChild } from './child.ts';
import { freePort } from './free-port.ts';
import { tempDir } from './temp-dir.ts';

export interface BackendOptions {
  /** What it is called in errors. */
  name: string;
  /** Path of the binary. */
  bin: string;
  /** Written into a new folder, which is its working directory: path below it → text. */
  files: Readonly<Record<string, string>>;
  /** Its command line, given the loopback address that it is to listen on, `host:port`. */
  args: (address: string) => readonly string[];
  /** The path that answers with 2xx once it is up. */
  readyPath: string;
}

export interface Backend {
  /** `http://127.0.0.1:PORT`. */
  url: string;
  /** What it wrote, its last 64 KiB. */
  logs(): string;
  /** Ends it and removes its folder. May be called twice. */
  close(): Promise<void>;
}

const readyWithinMs = 30_000;

/** Starts a program that serves HTTP on a free loopback port, and waits until it is up. Throws with its own words if not. */
export async function startBackend(options: BackendOptions): Promise<Backend> {
  // A port that was free may be another's by the time it is listened on: the program then ends at once, and tries others.
  for (let tries = 3; ; tries -= 1) {
    const started = await tryBackend(options);
    if (!(started instanceof Error)) return started;
    if (tries === 1) throw started;
  }
}

/** An error where it did not come up. */
async function tryBackend({ name, bin, files, args, readyPath }: BackendOptions): Promise<Backend | Error> {
  const dir = tempDir();
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(dir.path, file)), { recursive: true });
    writeFileSync(path.join(dir.path, file), text);
  }
  const address = `127.0.0.1:${await freePort()}`;
  const child = startChild(bin, args(address), dir.path);
  const close = async () => {
    await child.stop();
    dir.close();
  };
  const failure = await ready(child, `http://${address}${readyPath}`);
  if (failure === undefined) return { url: `http://${address}`, logs: child.logs, close };
  await close();
  return new Error(`${name} did not come up: ${failure.message}\n${child.logs()}`, { cause: failure });
}

async function ready(child: Child, url: string): Promise<Error | undefined> {
  const deadline = performance.now() + readyWithinMs;
  while (performance.now() < deadline) {
    const failure = child.failure();
    if (failure !== undefined) return failure;
    const answer = await fetch(url).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok === true) return undefined;
    await sleep(50);
  }
  return new Error(`not ready after ${readyWithinMs} ms`);
}
