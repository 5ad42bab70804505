import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';

/**
 * Replaces a file so that at every moment, also after a loss of power, it is whole: the old one or the new one. Readable
 * by its owner alone. Rejects as the file system does; the old file is then as it was.
 */
export async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.draft`;
  // One of a process that was killed. Made anew, never opened: another user's link there leads nowhere.
  await rm(draft, { force: true });
  try {
    await withFile(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, async (handle) => {
      await handle.writeFile(text);
      await handle.sync();
    });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await withFile(path.dirname(file), constants.O_RDONLY, async (folder) => folder.sync());
}

async function withFile(name: string, flags: number, use: (handle: FileHandle) => Promise<void>): Promise<void> {
  const handle = await open(name, flags, 0o600);
  try {
    await use(handle);
  } finally {
    await handle.close();
  }
}
