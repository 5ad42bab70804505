import { describe, expect, test } from 'vitest';
import { isInboundCluster, parseIstioCluster } from '../../src/model/cluster-name.ts';

describe('the name of a service’s cluster', () => {
  const host = 'web.shop.svc.cluster.local';
  test.each([
    [`outbound|80||${host}`, { direction: 'outbound', port: '80', fqdn: host }],
    [`outbound|80|v2|${host}`, { direction: 'outbound', port: '80', subset: 'v2', fqdn: host }],
    ['outbound|443||*.example.org', { direction: 'outbound', port: '443', fqdn: '*.example.org' }],
    ['inbound|8080||', { direction: 'inbound', port: '8080' }],
    [`inbound-vip|80|http|${host}`, { direction: 'inbound-vip', port: '80', protocol: 'http', fqdn: host }],
    [
      `inbound-vip|80|http/v2|${host}`,
      { direction: 'inbound-vip', port: '80', protocol: 'http', subset: 'v2', fqdn: host },
    ],
    [`inbound-vip|5432|tcp|${host}`, { direction: 'inbound-vip', port: '5432', protocol: 'tcp', fqdn: host }],
    [`outbound_.443_._.${host}`, { direction: 'outbound', port: '443', fqdn: host }],
    [`outbound_.443_.v2_.${host}`, { direction: 'outbound', port: '443', subset: 'v2', fqdn: host }],
  ])('%s', (name, parts) => {
    expect(parseIstioCluster(name)).toEqual({ protocol: undefined, subset: undefined, fqdn: undefined, ...parts });
  });

  test.each([
    'shop',
    'PassthroughCluster',
    'InboundPassthroughCluster',
    'BlackHoleCluster',
    'connect_originate',
    'main_internal',
    'xds-grpc',
    'a|b|c|d',
    'outbound|1||a|b',
    'outbound|80||',
    'outbound||x|y',
    '',
  ])('%s has no such parts', (name) => {
    expect(parseIstioCluster(name)?.fqdn).toBeUndefined();
  });
});

test.each([
  ['inbound|8080||', true],
  ['InboundPassthroughCluster', true],
  ['inbound-vip|80|http|web.shop.svc.cluster.local', false],
  ['outbound|80||web.shop.svc.cluster.local', false],
  ['PassthroughCluster', false],
])('%s is of a sidecar’s way in: %s', (name, inbound) => {
  expect(isInboundCluster(name)).toBe(inbound);
});
