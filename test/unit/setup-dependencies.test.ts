import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { installDependencies, missingPackages } from '../../setup/dependencies.mjs';
import { FakeMachine } from '../support/fake-machine.ts';

const locked = {
  packages: {
    '': { version: '0.1.0' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b': { version: '2.0.0' },
    'node_modules/for-another-system': { version: '3.0.0', optional: true },
  },
};
const installed = { packages: { 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '2.0.0' } } };

describe('which packages are missing', () => {
  test('none, when each is there in its version', () => {
    expect(missingPackages(locked, installed)).toEqual([]);
  });

  test('all, when npm has not finished an installation', () => {
    expect(missingPackages(locked, undefined)).toEqual(['node_modules/a', 'node_modules/b']);
  });

  test('one of another version', () => {
    const older = { packages: { ...installed.packages, 'node_modules/b': { version: '1.9.0' } } };

    expect(missingPackages(locked, older)).toEqual(['node_modules/b']);
  });
});

describe('installing', () => {
  test('npm is left alone when nothing is missing', async () => {
    const machine = machineWith({ node: 'echo v24.21.0' });
    machine.file('node_modules/.package-lock.json', JSON.stringify(installed));
    machine.command('npm', 'echo called; exit 1');

    await install(machine);

    expect(machine.said).toEqual([]);
  });

  test('npm ci runs in the project, off its own node_modules, and progress is said', async () => {
    const machine = machineWith({ node: 'echo v24.21.0' });
    machine.command('npm', `echo "$PWD $@ PATH=$PATH" > ${machine.root}/called`);

    await install(machine, { PATH: `${machine.root}/node_modules/.bin:${machine.root}/bin` });

    expect(readFileSync(`${machine.root}/called`, 'utf8')).toBe(
      `${machine.root} ci --loglevel=error PATH=${machine.root}/bin\n`,
    );
    expect(machine.said).toEqual([
      'installing npm packages with npm ci (2 missing or of another version; about half a minute)',
    ]);
  });

  test('a failed npm ci is the end, with what to do', async () => {
    const machine = machineWith({ node: 'echo v24.21.0' });
    machine.command('npm', 'exit 1');

    await expect(install(machine)).rejects.toThrow(
      [
        'could not install npm packages: npm ci failed, its reason is above',
        '  → see that npm reaches its registry (network, proxy), then run again',
      ].join('\n'),
    );
  });

  test('a full disk is named', async () => {
    const machine = machineWith({ node: 'echo v24.21.0' });
    machine.command('npm', 'echo "npm error code ENOSPC" >&2; exit 1');

    await expect(install(machine)).rejects.toThrow('could not install npm packages: no space left on the disk');
  });

  test('no npm is named', async () => {
    await expect(install(machineWith({ node: 'echo v24.21.0' }))).rejects.toThrow('there is no npm on PATH');
  });

  test.each([
    ['an older Node', 'echo v20.20.2', 'printed "v20.20.2"'],
    ['a Node whose install script was blocked', 'echo "no binary" >&2; exit 1', 'printed "no binary"'],
    ['no Node', undefined, 'does not run'],
  ])('%s in node_modules is one clear error', async (_, node, finding) => {
    const machine = machineWith({ node });
    machine.command('npm', ':');

    await expect(install(machine)).rejects.toThrow(
      [
        `no Node 24: ${machine.root}/node_modules/.bin/node ${finding}`,
        '  → the npm package node puts it there in its install script: see that npm may run it (no ignore-scripts; npm 12 asks for "allowScripts": {"node": true}, which package.json has)',
        '  → then remove node_modules and run again',
      ].join('\n'),
    );
  });
});

/** A project with that lockfile, and a `node_modules/.bin/node` that runs the given script. */
function machineWith({ node }: { node: string | undefined }): FakeMachine {
  const machine = new FakeMachine();
  machine.file('package-lock.json', JSON.stringify(locked));
  if (node !== undefined) machine.script('node_modules/.bin/node', node);
  return machine;
}

async function install(machine: FakeMachine, env: NodeJS.ProcessEnv = {}): Promise<void> {
  await installDependencies({ env: machine.env(env), root: machine.root, say: machine.say });
}
