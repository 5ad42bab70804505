import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * How a command ended. `missing`: there is no such command on PATH, or it may not be executed. `output` is stdout and
 * stderr as they came; a command that a signal ended has the code 1.
 * @typedef {{ missing: boolean, code: number, output: string }} CommandResult
 */

/**
 * Runs a command to its end without standard input; never throws.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ env: NodeJS.ProcessEnv, cwd: string, show?: boolean }} options `show` also passes its output through, as progress
 * @returns {Promise<CommandResult>}
 */
export function runCommand(command, args, { env, cwd, show = false }) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
        output += text;
        if (show) process.stderr.write(text);
      });
    }
    child.on('error', (error) => resolve({ missing: true, code: 1, output: output + String(error) }));
    child.on('close', (code) => resolve({ missing: false, code: code ?? 1, output }));
  });
}

/**
 * The first executable file of that name on PATH; absent where there is none.
 * @param {string} name
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined}
 */
export function findOnPath(name, env) {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/**
 * Whether the path is a file that this user may execute.
 * @param {string} path
 */
export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
