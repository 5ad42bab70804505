import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { runCommand } from './command.mjs';
import { SetupFailure } from './failure.mjs';

/** What Sidelight's TypeScript runs on, as its major version. */
const nodeMajor = 24;

/**
 * Only what is read here of `package-lock.json` and of the copy that npm leaves in `node_modules` when it has finished.
 * @typedef {{ packages?: Record<string, { version?: string, optional?: boolean, peer?: boolean }> }} Lockfile
 */

/**
 * Installs the npm packages if what is installed is not what the lockfile says, and makes sure of Node.
 * @param {{ env: NodeJS.ProcessEnv, root: string, say: (line: string) => void }} context
 * @throws {SetupFailure} with what was tried and what to do
 */
export async function installDependencies({ env, root, say }) {
  const missing = missingPackages(
    readLockfile(join(root, 'package-lock.json')),
    readLockfile(join(root, 'node_modules/.package-lock.json')),
  );
  if (missing.length > 0) {
    say(`installing npm packages with npm ci (${missing.length} missing or of another version; about half a minute)`);
    const result = await runCommand('npm', ['ci', '--loglevel=error'], {
      env: withoutLocalBin(env, root),
      cwd: root,
      show: true,
    });
    if (result.missing || result.code !== 0) throw npmFailure(result);
  }
  await requireNode({ env, root });
}

/**
 * The packages of the lockfile that are not installed in that version. Optional ones are left out: which of them npm
 * installs depends on the platform.
 * @param {Lockfile | undefined} locked
 * @param {Lockfile | undefined} installed absent where npm has not finished an installation
 * @returns {string[]} paths below the root, `node_modules/…`
 */
export function missingPackages(locked, installed) {
  const wanted = Object.entries(locked?.packages ?? {}).filter(
    ([path, entry]) => path !== '' && entry.optional !== true,
  );
  return wanted.filter(([path, entry]) => installed?.packages?.[path]?.version !== entry.version).map(([path]) => path);
}

/**
 * @param {{ env: NodeJS.ProcessEnv, root: string }} context
 * @throws {SetupFailure} when `node_modules/.bin/node` is not Node 24 or later
 */
async function requireNode({ env, root }) {
  const node = join(root, 'node_modules/.bin/node');
  const { missing, output } = await runCommand(node, ['--version'], { env, cwd: root });
  if (!missing && Number(/^v(\d+)\./.exec(output)?.[1] ?? 0) >= nodeMajor) return;
  throw new SetupFailure(
    `no Node ${nodeMajor}: ${node} ${missing ? 'does not run' : `printed ${JSON.stringify(output.trim().slice(0, 80))}`}`,
    [
      'the npm package node puts it there in its install script: see that npm may run it (no ignore-scripts; npm 12 asks for "allowScripts": {"node": true}, which package.json has)',
      'then remove node_modules and run again',
    ],
  );
}

/**
 * The local `node` is what `npm ci` replaces, so npm itself must not run on it.
 * @param {NodeJS.ProcessEnv} env
 * @param {string} root
 * @returns {NodeJS.ProcessEnv}
 */
function withoutLocalBin(env, root) {
  const local = join(root, 'node_modules/.bin');
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== local);
  return { ...env, PATH: folders.join(delimiter) };
}

/** @param {import('./command.mjs').CommandResult} result */
function npmFailure({ missing, output }) {
  if (missing)
    return new SetupFailure('could not install npm packages: there is no npm on PATH', [
      'install Node 20 or later with npm',
    ]);
  if (/ENOSPC|no space left/i.test(output)) {
    return new SetupFailure('could not install npm packages: no space left on the disk', [
      'free about 500 MB, then run again',
    ]);
  }
  return new SetupFailure('could not install npm packages: npm ci failed, its reason is above', [
    'see that npm reaches its registry (network, proxy), then run again',
  ]);
}

/**
 * @param {string} path
 * @returns {Lockfile | undefined}
 */
function readLockfile(path) {
  try {
    return /** @type {Lockfile} */ (JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return undefined;
  }
}
