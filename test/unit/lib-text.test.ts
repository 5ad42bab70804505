import { expect, test } from 'vitest';
import { parseHostPort } from '../../src/lib/host-port.ts';
import { canonicalIp, ipWithPort } from '../../src/lib/ip.ts';
import { nearName } from '../../src/lib/near-name.ts';

test.each([
  ['10.0.0.7', '10.0.0.7'],
  ['0:0:0:0:0:0:0:1', '::1'],
  ['2001:DB8::0001', '2001:db8::1'],
  ['::ffff:10.0.0.7', '10.0.0.7'],
  ['::ffff:a00:7', '10.0.0.7'],
  ['fe80::1%eth0', 'fe80::1'],
  ['010.0.0.7', undefined],
  ['', undefined],
  ['a.example', undefined],
])('the canonical form of %j is %j', (text, canonical) => {
  expect(canonicalIp(text)).toBe(canonical);
});

test('an IPv6 address with a port has brackets', () => {
  expect([ipWithPort('10.0.0.7', 80), ipWithPort('::1', 80)]).toEqual(['10.0.0.7:80', '[::1]:80']);
});

test.each([
  ['127.0.0.1:80', { host: '127.0.0.1', port: 80 }],
  ['[::1]:0', { host: '::1', port: 0 }],
  ['a.example:65535', { host: 'a.example', port: 65_535 }],
  ['a.example:65536', undefined],
  ['::1:80', undefined],
  ['[a]:80', undefined],
  [':80', undefined],
  ['a.example', undefined],
  ['http://a:80', undefined],
])('%j as host and port is %j', (text, parsed) => {
  expect(parseHostPort(text)).toEqual(parsed);
});

test('a near name is found in spite of case, separators and typos; a far one is not', () => {
  const known = ['lingerMs', 'maxWaitMs'];
  expect(['linger_ms', 'LINGER-MS', 'lingrMs', 'maxWait'].map((name) => nearName(name, known))).toEqual([
    'lingerMs',
    'lingerMs',
    'lingerMs',
    'maxWaitMs',
  ]);
  expect(nearName('retries', known)).toBeUndefined();
  expect(nearName('x', [])).toBeUndefined();
});
