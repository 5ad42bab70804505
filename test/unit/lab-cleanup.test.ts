import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';

it('undoes the latest first, and once', async () => {
  const undone: string[] = [];
  const cleanup = new Cleanup();
  cleanup.defer(() => undone.push('first'));
  cleanup.defer(async () => undone.push('second'));
  await cleanup.run();
  await cleanup.run();
  expect(undone).toEqual(['second', 'first']);
});

it('undoes the rest when one step fails, and then says what failed', async () => {
  const undone: string[] = [];
  const cleanup = new Cleanup();
  cleanup.defer(() => undone.push('first'));
  cleanup.defer(() => Promise.reject(new Error('stuck')));
  await expect(cleanup.run()).rejects.toMatchObject({ errors: [expect.objectContaining({ message: 'stuck' })] });
  expect(undone).toEqual(['first']);
});

it('removes a temporary folder with what is in it', () => {
  const dir = tempDir();
  writeFileSync(path.join(dir.path, 'file'), 'x');
  dir.close();
  expect(existsSync(dir.path)).toBe(false);
});
