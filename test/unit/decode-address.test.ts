import { expect, test } from 'vitest';
import { clientOfAddress, endpointOfText, upstreamOfAddress, upstreamOfText } from '../../src/decode/address.ts';

test.each([
  ['10.0.0.7:8080', { kind: 'ip', ip: '10.0.0.7', port: 8080 }],
  ['[::1]:80', { kind: 'ip', ip: '::1', port: 80 }],
  ['[2001:DB8:0:0:0:0:0:1]:443', { kind: 'ip', ip: '2001:db8::1', port: 443 }],
  ['[::ffff:10.0.0.7]:80', { kind: 'ip', ip: '10.0.0.7', port: 80 }],
  ['/run/x.sock', { kind: 'pipe', ip: undefined, port: undefined }],
  ['@abstract', { kind: 'pipe', ip: undefined, port: undefined }],
  ['envoy://connect_originate/10.0.0.7:8080', { kind: 'internal', ip: '10.0.0.7', port: 8080 }],
  ['envoy://connect_originate/[::1]:8080', { kind: 'internal', ip: '::1', port: 8080 }],
  ['envoy://inner_listener/some-endpoint', { kind: 'internal', ip: undefined, port: undefined }],
  ['upstream.test:80', { kind: 'other', ip: undefined, port: undefined }],
  ['10.0.0.7:99999', { kind: 'other', ip: undefined, port: undefined }],
])('reads %s', (text, endpoint) => {
  expect(endpointOfText(text)).toEqual({ text, ...endpoint });
});

test('an empty text is no endpoint', () => {
  expect(endpointOfText('')).toBeUndefined();
});

test.each([
  [{ socketAddress: { address: '10.0.0.7', portValue: 8080 } }, '10.0.0.7:8080'],
  [{ socketAddress: { address: '::1', portValue: 8080 } }, '[::1]:8080'],
  [{ pipe: { path: '/run/x.sock' } }, '/run/x.sock'],
  [
    { envoyInternalAddress: { serverListenerName: 'connect_originate', endpointId: '10.0.0.7:8080' } },
    'envoy://connect_originate/10.0.0.7:8080',
  ],
])('spells the address message %j as Envoy does', (address, text) => {
  expect(clientOfAddress(address)).toEqual(endpointOfText(text));
  expect(clientOfAddress(address)?.text).toBe(text);
  expect(upstreamOfAddress(address)).toBe(upstreamOfText(text));
});

test.each([[undefined], [{}], [{ pipe: {} }]])('%j is no endpoint', (address) => {
  expect(clientOfAddress(address)).toBeUndefined();
});
