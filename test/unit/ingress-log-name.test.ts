import { expect, test } from 'vitest';
import { logConfigOfName } from '../../src/ingress/log-stream.ts';

test.each([
  ['sidelight.full', { profile: 'full', configVersion: 1 }],
  ['sidelight.observe', { profile: 'observe', configVersion: 1 }],
  ['sidelight.full.2', { profile: 'full', configVersion: 2 }],
  ['sidelight.observe.12', { profile: 'observe', configVersion: 12 }],
])('the log name %s says profile and version', (name, config) => {
  expect(logConfigOfName(name)).toEqual(config);
});

test.each([
  '',
  'sidelight',
  'sidelight.',
  'sidelight.tag',
  'sidelight.full.',
  'sidelight.full.0',
  'sidelight.full.1',
  'sidelight.full.02',
  'sidelight.full.-2',
  'sidelight.full.2.3',
  'sidelight.full.2x',
  'sidelight.full.99999',
  'sidelight.full\n',
  ' sidelight.full',
  'Sidelight.full',
  'sidelight.toString',
])('%j is no log name of ours', (name) => {
  expect(logConfigOfName(name)).toBeUndefined();
});
