import { spawnSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findOnPath, isExecutable } from './command.mjs';
import { isNewEnough, oldestEnvoy, parseEnvoyVersion, pinnedEnvoy } from './envoy-version.mjs';
import { SetupFailure } from './failure.mjs';

/** The folder that holds `package.json`, whatever the working directory is. */
export const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * An Envoy that runs and is new enough. `from` says where it was found.
 * @typedef {{ path: string, version: string, from: 'ENVOY_BIN' | 'PATH' | '.tools' }} Envoy
 */

/**
 * Where to look: `root` is the folder that holds `.tools`, `say` takes a line for the reader about what was passed over.
 * @typedef {{ env?: NodeJS.ProcessEnv, root?: string, say?: (line: string) => void }} EnvoySearch
 */

/**
 * Where set-up puts the Envoy that it fetches.
 * @param {string} root
 */
export function fetchedEnvoyPath(root) {
  return join(root, '.tools', `envoy-${pinnedEnvoy.version}`, 'envoy');
}

/**
 * The Envoy to use: `ENVOY_BIN`, else `envoy` on PATH, else the one that set-up fetched. An old one on PATH is passed over.
 * @param {EnvoySearch} [search]
 * @returns {Envoy | undefined} absent where there is none
 * @throws {SetupFailure} when `ENVOY_BIN` does not run or is too old: what was asked for is never replaced silently
 */
export function lookForEnvoy({ env = process.env, root = packageRoot, say = () => {} } = {}) {
  const named = env['ENVOY_BIN'];
  if (named !== undefined && named !== '') return namedEnvoy(resolve(named));

  const onPath = findOnPath('envoy', env);
  if (onPath !== undefined) {
    const version = versionOf(onPath);
    if (version !== undefined && isNewEnough(version)) return { path: onPath, version, from: 'PATH' };
    say(`${onPath} is passed over: ${describe(version)}, and ${oldestEnvoy} or newer is needed`);
  }

  const fetched = fetchedEnvoyPath(root);
  const version = isExecutable(fetched) ? versionOf(fetched) : undefined;
  return version === undefined ? undefined : { path: fetched, version, from: '.tools' };
}

/**
 * Like `lookForEnvoy`, for those who cannot go on without one.
 * @param {EnvoySearch} [search]
 * @returns {Envoy}
 * @throws {SetupFailure} when there is none, too
 */
export function findEnvoy(search = {}) {
  const envoy = lookForEnvoy(search);
  if (envoy !== undefined) return envoy;
  throw new SetupFailure(
    `no Envoy: ENVOY_BIN is not set, there is no usable envoy on PATH, nor ${fetchedEnvoyPath(search.root ?? packageRoot)}`,
    [
      `in a clone, npm run setup fetches Envoy ${pinnedEnvoy.version}`,
      `or set ENVOY_BIN to an Envoy ${oldestEnvoy} or newer`,
    ],
  );
}

/**
 * @param {string} path
 * @returns {Envoy}
 */
function namedEnvoy(path) {
  const version = versionOf(path);
  if (version !== undefined && isNewEnough(version)) return { path, version, from: 'ENVOY_BIN' };
  throw new SetupFailure(`ENVOY_BIN names ${path}: ${describe(version)}`, [
    `set ENVOY_BIN to an Envoy ${oldestEnvoy} or newer`,
    `or unset it: set-up then uses envoy on PATH, or fetches Envoy ${pinnedEnvoy.version}`,
  ]);
}

/** @param {string | undefined} version */
function describe(version) {
  return version === undefined ? 'it does not run as an Envoy' : `it is Envoy ${version}`;
}

/**
 * @param {string} path
 * @returns {string | undefined} absent where it does not run, or is no Envoy
 */
function versionOf(path) {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8', timeout: 10_000 });
  return parseEnvoyVersion(stdout ?? '');
}
