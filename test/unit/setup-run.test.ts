import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { envoyOf, FakeMachine } from '../support/fake-machine.ts';

/** Runs set-up in a clone that holds nothing but set-up and an empty lockfile. */
function setUp(machine: FakeMachine, env: NodeJS.ProcessEnv = {}) {
  cpSync(join(import.meta.dirname, '../../setup'), join(machine.root, 'setup'), { recursive: true });
  machine.file('package-lock.json', '{}');
  const script = join(machine.root, 'setup/setup.mjs');
  return spawnSync(process.execPath, [script], { encoding: 'utf8', cwd: '/', env: machine.env(env) });
}

test('when nothing is missing, one line says what is used', () => {
  const machine = new FakeMachine();
  machine.script('node_modules/.bin/node', 'echo v24.21.0');
  machine.command('envoy', envoyOf('1.40.0'));

  const { status, stderr } = setUp(machine);

  expect(stderr).toBe(`setup: ready: Envoy 1.40.0 (${machine.root}/bin/envoy, from PATH)\n`);
  expect(status).toBe(0);
});

test('a failure is one clear error, without a stack, and the end of the run', () => {
  const machine = new FakeMachine();
  machine.script('node_modules/.bin/node', 'echo v20.20.2');

  const { status, stderr } = setUp(machine);

  expect(stderr).toMatch(/^setup failed: no Node 24: .*\n {2}→ .*\n {2}→ then remove node_modules and run again\n$/);
  expect(status).toBe(1);
});

test('an ENVOY_BIN that does not run ends it', () => {
  const machine = new FakeMachine();
  machine.script('node_modules/.bin/node', 'echo v24.21.0');

  const { status, stderr } = setUp(machine, { ENVOY_BIN: '/nowhere/envoy' });

  expect(stderr).toContain('setup failed: ENVOY_BIN names /nowhere/envoy: it does not run as an Envoy\n');
  expect(status).toBe(1);
});
