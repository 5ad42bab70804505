import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runAttach } from '../support/attach.ts';
import { FakeMachine } from '../support/fake-machine.ts';

const script = join(import.meta.dirname, '../../bin/sidelight');
/** `dirname` and `readlink` are all that the script takes from the system. */
const systemCommands = '/usr/bin:/bin';

/** A package folder with bin/sidelight in it, and a `node` on PATH that runs the given script instead of Node. */
function packageWith(files: readonly string[], node: { path: string; body: string }): FakeMachine {
  const machine = new FakeMachine();
  machine.script('package/bin/sidelight', '');
  cpSync(script, join(machine.root, 'package/bin/sidelight'));
  chmodSync(join(machine.root, 'package/bin/sidelight'), 0o755);
  for (const file of files) machine.file(join('package', file), '');
  machine.script(node.path, node.body);
  return machine;
}

function run(machine: FakeMachine, args: string[] = [], path = join(machine.root, 'package/bin/sidelight')) {
  const env = { PATH: `${machine.root}/bin:${systemCommands}` };
  return spawnSync(path, args, { encoding: 'utf8', cwd: '/', env });
}

const node = (version: string): string => `[ "$1" = --version ] && echo ${version} || echo "$0 $@"`;

test('in a clone the sources run on its own Node', () => {
  const machine = packageWith(['src/main.ts'], { path: 'package/node_modules/.bin/node', body: node('v24.21.0') });

  const { stdout } = run(machine, ['serve', '--config', 'a b.yaml']);

  const root = join(machine.root, 'package');
  expect(stdout).toBe(
    `${root}/node_modules/.bin/node --max-semi-space-size=4 ${root}/src/main.ts serve --config a b.yaml\n`,
  );
});

test('a clone that is not set up says what to do', () => {
  const machine = packageWith(['src/main.ts'], { path: 'bin/node', body: node('v24.21.0') });

  const { status, stderr } = run(machine);

  const root = join(machine.root, 'package');
  expect(stderr).toBe(
    `sidelight: needs Node 24 or later, found none (${root}/node_modules/.bin/node); run npm run setup in ${root}\n`,
  );
  expect(status).toBe(1);
});

test('the installed package runs dist/ on the Node of PATH, through a link too', () => {
  const machine = packageWith(['dist/main.js'], { path: 'bin/node', body: node('v26.0.0') });
  const link = join(machine.root, 'bin/sidelight');
  symlinkSync('../package/bin/sidelight', link);

  expect(run(machine, ['--help'], link).stdout).toBe(
    `${machine.root}/bin/node --max-semi-space-size=4 ${machine.root}/package/dist/main.js --help\n`,
  );
});

test.each(['v20.20.2', 'v22.18.0'])('the installed package refuses Node %s', (version) => {
  const machine = packageWith(['dist/main.js'], { path: 'bin/node', body: node(version) });

  const { status, stderr } = run(machine);

  expect(stderr).toBe(
    `sidelight: needs Node 24 or later, found ${version} (node); install Node 24 or later, and put it first on PATH\n`,
  );
  expect(status).toBe(1);
});

test('Node takes the place of the script, so that a signal reaches it and its exit code is the one seen', async () => {
  const machine = packageWith(['dist/main.js'], {
    path: 'bin/node',
    body: `[ "$1" = --version ] && { echo v24.21.0; exit; }
trap 'exit 7' TERM
echo "$$"
while :; do sleep 0.05; done`,
  });
  const child: ChildProcess = spawn(join(machine.root, 'package/bin/sidelight'), {
    env: { PATH: `${machine.root}/bin:${systemCommands}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [pid] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];

  child.kill('SIGTERM');

  expect(Number(pid.toString())).toBe(child.pid);
  expect(await once(child, 'exit')).toEqual([7, null]);
});

test('what is written to a pipe comes whole, also where the reader is slower', () => {
  const targets = ['sidecar-outbound', 'sidecar-inbound', 'waypoint', 'gateway'];
  const args = [
    ...targets.flatMap((target) => ['--to', target]),
    '--namespace',
    'shop',
    '--profile',
    'full',
    '--sample',
    '10%',
  ];
  const written = runAttach(...args);
  // More than a pipe holds.
  expect(written.length).toBeGreaterThan(65_536);
  const command = `"$0" attach "$@" | { sleep 1; cat; }`;
  expect(spawnSync('sh', ['-c', command, script, ...args], { encoding: 'utf8' }).stdout).toBe(written);
});
