import { Resolver } from 'node:dns/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DnsServer } from '../../src/lab/dns-server.ts';

let server: DnsServer;
let resolver: Resolver;

beforeEach(async () => {
  server = await DnsServer.start();
  resolver = new Resolver({ timeout: 200, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.port}`]);
});
afterEach(() => server.close());

it('answers with the addresses and the TTL that were set last, and counts the questions', async () => {
  server.set('app.test', { kind: 'addresses', addresses: ['127.0.0.11'], ttlSeconds: 7 });
  expect(await resolver.resolve4('app.test', { ttl: true })).toEqual([{ address: '127.0.0.11', ttl: 7 }]);
  server.set('app.test', { kind: 'addresses', addresses: ['127.0.0.12', '127.0.0.13'], ttlSeconds: 1 });
  expect((await resolver.resolve4('app.test')).toSorted()).toEqual(['127.0.0.12', '127.0.0.13']);
  expect(server.queries('app.test')).toBe(2);
});

it('keeps A and AAAA apart', async () => {
  server.set('app.test', { kind: 'addresses', addresses: ['::1'], ttlSeconds: 1 }, 'AAAA');
  expect(await resolver.resolve6('app.test')).toEqual(['::1']);
  await expect(resolver.resolve4('app.test')).rejects.toMatchObject({ code: 'ENODATA' });
});

it('gives another subset at each question when told to rotate', async () => {
  server.set('app.test', { kind: 'rotating', addresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'], ttlSeconds: 1, size: 2 });
  expect((await resolver.resolve4('app.test')).toSorted()).toEqual(['10.0.0.1', '10.0.0.2']);
  expect((await resolver.resolve4('app.test')).toSorted()).toEqual(['10.0.0.2', '10.0.0.3']);
  expect((await resolver.resolve4('app.test')).toSorted()).toEqual(['10.0.0.1', '10.0.0.3']);
});

it.each([
  ['nxdomain', 'ENOTFOUND'],
  ['nodata', 'ENODATA'],
  ['servfail', 'ESERVFAIL'],
  ['drop', 'ETIMEOUT'],
] as const)('fails with %s as %s', async (kind, code) => {
  server.set('app.test', { kind });
  await expect(resolver.resolve4('app.test')).rejects.toMatchObject({ code });
  expect(server.queries('app.test')).toBe(1);
});

it('says over UDP that an answer is too long for it, and gives it over TCP', async () => {
  const many = Array.from({ length: 200 }, (_, i) => `10.0.0.${i}`);
  server.set('app.test', { kind: 'long', addresses: many, ttlSeconds: 7 });
  expect((await resolver.resolve4('app.test')).toSorted()).toEqual(many.toSorted());
  expect(server.queries('app.test')).toBe(2);
});

it('sends what is no DNS', async () => {
  server.set('app.test', { kind: 'garbage' });
  await expect(resolver.resolve4('app.test')).rejects.toMatchObject({ code: expect.stringMatching(/^E/) });
  expect(server.queries('app.test')).toBe(1);
});

it('knows no other name', async () => {
  await expect(resolver.resolve4('other.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
});
