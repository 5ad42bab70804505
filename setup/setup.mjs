// Runs before `npm test` and `npm run demo`, on whatever Node npm runs on (20 or later): built-in modules only.
import { installDependencies } from './dependencies.mjs';
import { lookForEnvoy, packageRoot } from './envoy.mjs';
import { SetupFailure } from './failure.mjs';
import { fetchEnvoy } from './fetch-envoy.mjs';

/** @param {string} line */
const say = (line) => process.stderr.write(`setup: ${line}\n`);

/**
 * Installs what is missing; quick, and one line, when nothing is.
 * @param {{ env: NodeJS.ProcessEnv, root: string, platform: string }} machine
 */
async function setUp({ env, root, platform }) {
  await installDependencies({ env, root, say });
  let envoy = lookForEnvoy({ env, root, say });
  if (envoy === undefined) {
    await fetchEnvoy({ env, root, platform, say });
    envoy = lookForEnvoy({ env, root });
  }
  if (envoy === undefined)
    throw new SetupFailure('Envoy was fetched, but does not run', ['remove .tools and run again']);
  say(`ready: Envoy ${envoy.version} (${envoy.path}${envoy.from === '.tools' ? '' : `, from ${envoy.from}`})`);
}

try {
  await setUp({ env: process.env, root: packageRoot, platform: `${process.platform}-${process.arch}` });
} catch (error) {
  if (!(error instanceof SetupFailure)) throw error;
  process.stderr.write(`setup failed: ${error.message}\n`);
  process.exitCode = 1;
}
