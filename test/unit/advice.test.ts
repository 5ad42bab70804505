import { expect, it } from 'vitest';
import { adviseOn } from '../../src/judge/advice.ts';
import type { ProxyHost, ProxyView } from '../../src/model/view.ts';
import { connection } from '../support/connections.ts';
import { pin } from '../support/judged.ts';

const left = { leftAtMs: 1000 };
const stale = pin({ pin: 'stale', ...left });
const draining = pin({ pin: 'draining', ...left });

function proxy(type: string, host?: Partial<ProxyHost>): ProxyView {
  return {
    nodeId: 'shop-1.default',
    cluster: 'app',
    subject: 'http://127.0.0.1:9901',
    type,
    envoyVersion: '1.38.3',
    hosts: new Map(
      host === undefined
        ? []
        : [['127.0.0.11:8080', { activeConnections: 1, healthy: true, pendingRemoval: false, ...host }]],
    ),
    activeConnections: 1,
    openedMeanwhile: false,
    idleTimeoutMs: undefined,
    closesOnHostSetChange: false,
    ignoresHealthOnRemoval: false,
    maxConnectionDurationMs: undefined,
    newDnsImplementation: undefined,
    lastAnswerMs: 2000,
    staleAfterMs: 60_000,
    lastError: undefined,
  };
}

const underWay = new Map([['k', { bytes: 1, heardMs: 2000 }]]);

it.each([
  ['a pool of a LOGICAL_DNS cluster', {}, stale, proxy('LOGICAL_DNS'), 'logical_dns_pool'],
  ['a pool of a cluster whose type is not known', {}, stale, undefined, 'pool_kept'],
  [
    'a pool of a cluster that is to close all its connections at a change',
    {},
    stale,
    { ...proxy('STRICT_DNS'), closesOnHostSetChange: true },
    'host_set_change',
  ],
  ['a pool inside the grace', {}, draining, proxy('LOGICAL_DNS'), undefined],
  ['a request that runs', { underWay }, draining, undefined, 'long_request'],
  ['a TCP connection', { layer: 'tcp' as const, underWay }, draining, undefined, 'tcp_session'],
  [
    'a host that Envoy holds by its health check',
    {},
    stale,
    proxy('STRICT_DNS', { pendingRemoval: true }),
    'health_check_hold',
  ],
  ['a host that the proxy still lists', {}, stale, proxy('EDS', {}), 'old_proxy_list'],
  [
    'a connection that was opened afterwards',
    { layer: 'tcp' as const },
    pin({ pin: 'stale_view', ...left }),
    undefined,
    'old_proxy_list',
  ],
  ['a listed endpoint', {}, pin({ pin: 'current' }), proxy('EDS', {}), undefined],
] as const)('%s', (_case, of, verdict, view, reason) => {
  const advice = adviseOn(connection(of), verdict, view);
  expect([advice?.reason, (advice?.changes.length ?? 0) > 0]).toEqual([reason, reason !== undefined]);
});
