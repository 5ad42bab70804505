import { fileURLToPath } from 'node:url';
import type { Program } from '../../src/cli/demo/sidelight-process.ts';

/** Sidelight as it stands here, to be started as a process of its own. `flags`: of Node. */
export function thisProgram(...flags: readonly string[]): Program {
  return { node: process.execPath, flags, entry: fileURLToPath(new URL('../../src/main.ts', import.meta.url)) };
}
