// `npm run check`: every check runs, whatever the one before it said, so that one run shows all there is to mend.
import { execFileSync } from 'node:child_process';
import { packageRoot } from './envoy.mjs';

const checks = ['format', 'lint', 'types', 'dead-code'];

const failed = checks.filter((check) => !passes(check));
console.log(failed.length === 0 ? 'check: all passed' : `check: failed: ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;

/**
 * Runs the script `check:<name>` of package.json and shows what it prints.
 * @param {string} name
 */
function passes(name) {
  console.log(`check: ${name}`);
  try {
    execFileSync('npm', ['run', '--silent', `check:${name}`], {
      cwd: packageRoot,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    return true;
  } catch {
    return false;
  }
}
