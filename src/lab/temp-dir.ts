import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const open = new Set<string>();

process.on('exit', () => {
  for (const dir of open) rmSync(dir, { recursive: true, force: true });
});

export interface TempDir {
  path: string;
  /** Removes it with all that is in it. */
  close(): void;
}

/** A new empty folder, removed by `close` or when this process exits. */
export function tempDir(): TempDir {
  const dir = mkdtempSync(path.join(tmpdir(), 'sidelight-lab-'));
  open.add(dir);
  return {
    path: dir,
    close() {
      rmSync(dir, { recursive: true, force: true });
      open.delete(dir);
    },
  };
}
