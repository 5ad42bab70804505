import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { z } from 'zod';

/** The form of the file. Another one is not understood, and not guessed at. */
export const stateVersion = 1;

/** A clock may be set back a little between two runs, by a time server at boot. */
const futureMs = 60_000;

/** What the file said. */
export interface Contents<D, P> {
  savedAtMs: number;
  discovery: D;
  pins: P;
}

export type ReadState<D, P> =
  | { kind: 'none' }
  | { kind: 'good'; contents: Contents<D, P> }
  /** It is there and cannot be used; why, in words. */
  | { kind: 'bad'; reason: string }
  /** It is no file: it is not touched. */
  | { kind: 'no_file' };

/** Reads the file. Rejects as the file system does, but for a file that is not there. */
export async function readState<D, P>(
  file: string,
  schemas: { discovery: z.ZodType<D>; pins: z.ZodType<P> },
  { maxBytes, nowMs }: { maxBytes: number; nowMs: number },
): Promise<ReadState<D, P>> {
  const text = await readText(file, maxBytes);
  if (typeof text !== 'string') return text;
  const json = parsed(text);
  const version = z.object({ version: z.number() }).safeParse(json);
  if (!version.success) return { kind: 'bad', reason: 'it is no state file' };
  if (version.data.version !== stateVersion)
    return { kind: 'bad', reason: `it has version ${version.data.version}, and ${stateVersion} is understood` };
  const whole = z.object({ savedAtMs: z.number(), ...schemas }).safeParse(json);
  if (!whole.success) {
    const [issue] = whole.error.issues;
    return { kind: 'bad', reason: `${issue?.path.join('.')}: ${issue?.message}` };
  }
  const { savedAtMs, discovery, pins } = whole.data as Contents<D, P>;
  // What it calls the latest answer would never grow stale.
  if (savedAtMs > nowMs + futureMs) return { kind: 'bad', reason: 'it was written in the future' };
  return { kind: 'good', contents: { savedAtMs, discovery, pins } };
}

async function readText(file: string, maxBytes: number): Promise<string | ReadState<never, never>> {
  // Without O_NONBLOCK a pipe in the file's place would be waited for.
  const handle = await openIfAllowed(file);
  if ('kind' in handle) return handle;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return { kind: 'no_file' };
    if (stats.size > maxBytes) return { kind: 'bad', reason: `it has more than ${maxBytes} bytes` };
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

async function openIfAllowed(file: string): Promise<FileHandle | ReadState<never, never>> {
  try {
    return await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') return { kind: 'none' };
    if (code === 'EACCES') return { kind: 'bad', reason: 'reading it is not permitted' };
    throw error;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
