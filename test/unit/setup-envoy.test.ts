import { chmodSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { findEnvoy, lookForEnvoy } from '../../setup/envoy.mjs';
import { isNewEnough, parseEnvoyVersion } from '../../setup/envoy-version.mjs';
import { envoyOf, FakeMachine } from '../support/fake-machine.ts';

const fetched = '.tools/envoy-1.40.0/envoy';

describe('which Envoy is used', () => {
  test('ENVOY_BIN goes before PATH and .tools', () => {
    const machine = new FakeMachine();
    machine.command('envoy', envoyOf('1.39.0'));
    machine.script(fetched, envoyOf('1.40.0'));
    const named = machine.script('mine/envoy', envoyOf('1.37.0'));

    const envoy = findEnvoy({ root: machine.root, env: machine.env({ ENVOY_BIN: named }) });

    expect(envoy).toEqual({ path: named, version: '1.37.0', from: 'ENVOY_BIN' });
  });

  test('an envoy on PATH goes before .tools', () => {
    const machine = new FakeMachine();
    const path = machine.command('envoy', envoyOf('1.41.0-dev'));
    machine.script(fetched, envoyOf('1.40.0'));

    expect(findEnvoy({ root: machine.root, env: machine.env() })).toEqual({
      path,
      version: '1.41.0-dev',
      from: 'PATH',
    });
  });

  test('an old envoy on PATH is passed over, with a line that says so', () => {
    const machine = new FakeMachine();
    const old = machine.command('envoy', envoyOf('1.36.9'));
    const path = machine.script(fetched, envoyOf('1.40.0'));

    expect(findEnvoy({ root: machine.root, env: machine.env(), say: machine.say })).toEqual({
      path,
      version: '1.40.0',
      from: '.tools',
    });
    expect(machine.said).toEqual([`${old} is passed over: it is Envoy 1.36.9, and 1.37 or newer is needed`]);
  });

  test('another program called envoy on PATH is passed over', () => {
    const machine = new FakeMachine();
    const other = machine.command('envoy', 'echo "Laravel Envoy 2.8.1"');

    expect(lookForEnvoy({ root: machine.root, env: machine.env(), say: machine.say })).toBeUndefined();
    expect(machine.said).toEqual([`${other} is passed over: it does not run as an Envoy, and 1.37 or newer is needed`]);
  });

  test('an empty ENVOY_BIN is as none', () => {
    const machine = new FakeMachine();
    const path = machine.command('envoy', envoyOf('1.40.0'));

    expect(findEnvoy({ root: machine.root, env: machine.env({ ENVOY_BIN: '' }) }).path).toBe(path);
  });

  test('a fetched Envoy that cannot be executed is as none', () => {
    const machine = new FakeMachine();
    chmodSync(machine.script(fetched, envoyOf('1.40.0')), 0o644);

    expect(lookForEnvoy({ root: machine.root, env: machine.env() })).toBeUndefined();
  });
});

describe('what is said when there is none', () => {
  test('an old ENVOY_BIN is an error, though PATH has a good one', () => {
    const machine = new FakeMachine();
    machine.command('envoy', envoyOf('1.40.0'));
    const old = machine.script('old/envoy', envoyOf('1.36.0'));

    expect(() => findEnvoy({ root: machine.root, env: machine.env({ ENVOY_BIN: old }) })).toThrow(
      [
        `ENVOY_BIN names ${old}: it is Envoy 1.36.0`,
        '  → set ENVOY_BIN to an Envoy 1.37 or newer',
        '  → or unset it: set-up then uses envoy on PATH, or fetches Envoy 1.40.0',
      ].join('\n'),
    );
  });

  test('an ENVOY_BIN that is not there is an error', () => {
    const machine = new FakeMachine();

    expect(() => findEnvoy({ root: machine.root, env: machine.env({ ENVOY_BIN: '/nowhere/envoy' }) })).toThrow(
      'ENVOY_BIN names /nowhere/envoy: it does not run as an Envoy',
    );
  });

  test('without any, the places that were looked at are named', () => {
    const machine = new FakeMachine();

    expect(() => findEnvoy({ root: machine.root, env: machine.env() })).toThrow(
      [
        `no Envoy: ENVOY_BIN is not set, there is no usable envoy on PATH, nor ${machine.root}/.tools/envoy-1.40.0/envoy`,
        '  → in a clone, npm run setup fetches Envoy 1.40.0',
        '  → or set ENVOY_BIN to an Envoy 1.37 or newer',
      ].join('\n'),
    );
  });
});

describe('versions', () => {
  test.each([
    ['1.36.9', false],
    ['1.37.0-dev', true],
    ['1.37.0', true],
    ['1.40.0', true],
    ['1.100.0', true],
    ['2.0.0', true],
    ['0.99.0', false],
  ])('%s is new enough: %s', (version, answer) => {
    expect(isNewEnough(version)).toBe(answer);
  });

  test.each([
    ['\n/opt/envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL\n', '1.40.0'],
    ['envoy  version: 9e55/1.41.0-dev/Modified/DEBUG/BoringSSL', '1.41.0-dev'],
    ['Laravel Envoy 2.8.1', undefined],
    ['', undefined],
  ])('%j is read as %s', (printed, version) => {
    expect(parseEnvoyVersion(printed)).toBe(version);
  });
});
