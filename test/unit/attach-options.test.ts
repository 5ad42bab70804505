import { describe, expect, it } from 'vitest';
import { attachEnds } from '../support/attach.ts';

/* What the command line may say. What is wrong with it is told whole, on stderr, with exit code 2 and nothing on stdout. */
const sidecar = ['--to', 'sidecar-outbound'];
const app = ['--namespace', 'app'];

function mistakes(...args: string[]): string[] {
  const { code, out, err } = attachEnds(...args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  return err
    .trim()
    .split('\n')
    .map((line) => line.replace('sidelight attach: ', ''));
}

describe('a mistake', () => {
  it.each<[string, string[], string]>([
    ['a target that is none', ['--to', 'sidecar', ...app], '--to: found "sidecar": expected sidecar-outbound, '],
    ['a profile that is none', [...sidecar, ...app, '--profile', 'all'], '--profile: found "all": expected full, tag'],
    ['no namespace', sidecar, 'expected --namespace NAME, or --mesh'],
    ['a namespace and the mesh', [...sidecar, ...app, '--mesh'], '--mesh, --namespace: expected one of them'],
    ['no name of a namespace', [...sidecar, '--namespace', 'App'], '--namespace: found "App": expected the name'],
    ['no name of a root namespace', [...sidecar, '--mesh', '--root-namespace', ''], '--root-namespace: found ""'],
    [
      'a label without a value',
      [...sidecar, ...app, '--selector', 'app'],
      '--selector: found "app": expected KEY=VALUE',
    ],
    ['a label twice', [...sidecar, ...app, '--selector', 'a=1,a=2'], '--selector: found "a=2"'],
    [
      'two places',
      [...sidecar, ...app, '--uds', '/x', '--address', 'a:1'],
      '--service, --address, --uds: expected one',
    ],
    [
      'a service without a namespace',
      [...sidecar, ...app, '--service', 'x'],
      '--service: found "x": expected NAME.NAME',
    ],
    ['a service of port 0', [...sidecar, ...app, '--service', 'a.b:0'], '--service: found "a.b:0"'],
    ['an address without a port', [...sidecar, ...app, '--address', 'x'], '--address: found "x": expected host:port'],
    ['a relative socket', [...sidecar, ...app, '--uds', 'x.sock'], '--uds: found "x.sock": expected an absolute path'],
    ['a port of 0', [...sidecar, ...app, '--port', '0'], '--port: found "0": expected 1 to 65535'],
    [
      'a share of nothing',
      [...sidecar, ...app, '--profile', 'tag', '--sample', '0'],
      '--sample: found "0": expected more',
    ],
    ['a share over all', [...sidecar, ...app, '--profile', 'tag', '--sample', '101%'], '--sample: found "101%"'],
    ['half of what is only logged', [...sidecar, ...app, '--sample', '50%'], '--sample: profile observe counts every'],
    ['a header where nothing is in the path', [...sidecar, ...app, '--inject'], '--inject: profile observe cannot'],
    [
      'a wait of a minute',
      [...sidecar, ...app, '--message-timeout', '1m'],
      '--message-timeout: found "1m": expected 1ms',
    ],
    ['no proxies', [...sidecar, ...app, '--proxies', '0'], '--proxies: found "0": expected 1 to'],
    [
      'an Istio that is not known',
      [...sidecar, ...app, '--istio', '1.27'],
      '--istio: found "1.27": expected 1.28 or later',
    ],
    [
      'a log in an Istio that cannot',
      [...sidecar, ...app, '--istio', '1.28'],
      '--profile observe: Istio 1.28 carries Envoy',
    ],
    ['a sidecar of a Gateway', [...sidecar, ...app, '--gateway', 'x'], '--gateway: a sidecar has none'],
    [
      'pods of a waypoint',
      ['--to', 'waypoint', ...app, '--selector', 'a=b'],
      '--selector: Istio ignores a selector on',
    ],
    ['the port of a waypoint', ['--to', 'waypoint', ...app, '--port', '80'], '--port: a waypoint has one listener'],
    ['one service of a sidecar', [...sidecar, ...app, '--only', 'a.b:1'], '--only: for a waypoint alone'],
    [
      'a short name',
      ['--to', 'waypoint', ...app, '--only', 'web:80'],
      '--only: found "web:80": expected the full name',
    ],
    [
      'the inbound side of all',
      ['--to', 'sidecar-inbound', '--mesh'],
      '--mesh: on the inbound side it would land in front',
    ],
    [
      'Sidelight itself',
      [...sidecar, '--namespace', 'sidelight', '--service', 'sidelight.sidelight'],
      '--namespace sidelight: Sidelight itself is there',
    ],
    ['an Envoy without a config', ['--to', 'envoy'], '--to envoy: expected --config FILE'],
    ['an Envoy and a sidecar', ['--to', 'envoy', ...sidecar, '--config', 'x'], '--to: envoy goes with no other target'],
    ['the config of a sidecar', [...sidecar, ...app, '--config', 'x'], '--config: only with --to envoy'],
    ['a namespace of an Envoy', ['--to', 'envoy', '--config', 'x', ...app], '--namespace: for Istio alone'],
    [
      'a config that is not there',
      ['--to', 'envoy', '--config', '/no/such'],
      '--config /no/such: cannot be read: ENOENT',
    ],
  ])('is told: %s', (_, args, expected) => {
    expect(mistakes(...args)).toContainEqual(expect.stringContaining(expected));
  });

  it('does not hide another one', () => {
    expect(
      mistakes(...sidecar, '--profile', 'y', '--sample', 'z', '--uds', 'x', '--port', '0', '--istio', '2'),
    ).toHaveLength(6);
  });

  it('of a flag that is not known has exit code 2 too', () => {
    expect(() => attachEnds('--to', 'envoy', '--nope')).toThrow('unknown option');
  });
});

it('says the same for the same command, however often', () => {
  const command = ['--to', 'waypoint', ...app, '--profile', 'full'];
  expect(attachEnds(...command)).toEqual(attachEnds(...command));
});

it('writes the cluster of sidecars and that of gateways apart: they are patched in different contexts', () => {
  const { out } = attachEnds(...sidecar, '--to', 'gateway', ...app, '--service', 'sidelight.sidelight');
  const names = Array.from(out.matchAll(/^ {2}name: (?<name>\S+)$/gm), (match) => match.groups?.['name']);
  expect(names).toEqual([
    'sidelight-sidecar-outbound',
    'sidelight-cluster',
    'sidelight-gateway',
    'sidelight-gateway-cluster',
  ]);
});
