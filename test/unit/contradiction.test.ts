import { describe, expect, test } from 'vitest';
import { contradictionOf, mayHoldConnection } from '../../src/judge/contradiction.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import type { Pin } from '../../src/model/verdict.ts';
import type { ProxyHost, ProxyView } from '../../src/model/view.ts';
import { ip, pin } from '../support/judged.ts';

const host = (activeConnections: number | undefined, pendingRemoval = false): ProxyHost => ({
  activeConnections,
  healthy: true,
  pendingRemoval,
});

/** Asked at 10 s; 127.0.0.12 has the only connection. */
function proxy(change: Partial<ProxyView> = {}): ProxyView {
  return {
    nodeId: 'n',
    cluster: 'app',
    subject: 'http://127.0.0.1:15000',
    type: 'STRICT_DNS',
    envoyVersion: '1.40.0',
    hosts: new Map([
      ['127.0.0.12:80', host(1)],
      ['127.0.0.13:80', host(0)],
    ]),
    activeConnections: 1,
    openedMeanwhile: false,
    idleTimeoutMs: undefined,
    closesOnHostSetChange: false,
    ignoresHealthOnRemoval: false,
    maxConnectionDurationMs: undefined,
    newDnsImplementation: undefined,
    lastAnswerMs: 10_000,
    staleAfterMs: 60_000,
    lastError: undefined,
    ...change,
  };
}

describe('how a proxy contradicts the world, or the bytes', () => {
  const left = (name: Pin) => pin({ pin: name, leftAtMs: 5000 });
  const keeping = proxy({ hosts: new Map([['127.0.0.11:80', host(1, true)]]) });

  test.each([
    ['left, and not listed by the proxy', left('stale'), '127.0.0.11:80', proxy(), 'proxy_not_listing'],
    ['draining, and not listed by the proxy', left('draining'), '127.0.0.11:80', proxy(), 'proxy_not_listing'],
    ['left, and still listed by the proxy', left('stale_view'), '127.0.0.12:80', proxy(), 'proxy_still_lists'],
    ['left, and kept for its health check alone', left('stale'), '127.0.0.11:80', keeping, undefined],
    ['current, and the proxy lacks it', pin(), '127.0.0.11:80', proxy(), 'proxy_misses'],
    ['current, and listed', pin(), '127.0.0.12:80', proxy(), undefined],
    ['unlisted, and not listed', pin({ pin: 'unlisted' }), '127.0.0.11:80', proxy(), 'proxy_not_listing'],
    ['unlisted, and listed', pin({ pin: 'unlisted' }), '127.0.0.12:80', proxy(), undefined],
    ['unknown, and not listed', pin({ pin: 'unknown' }), '127.0.0.11:80', proxy(), 'proxy_not_listing'],
    [
      'a type whose hosts come with the requests',
      pin({ pin: 'unknown' }),
      '127.0.0.11:80',
      proxy({ type: 'ORIGINAL_DST' }),
      undefined,
    ],
    ['another port', pin(), '127.0.0.12:81', proxy(), 'proxy_misses'],
    ['a proxy that is not asked', left('stale'), '127.0.0.11:80', undefined, undefined],
    ['asked before it left', pin({ pin: 'draining', leftAtMs: 11_000 }), '127.0.0.12:80', proxy(), undefined],
  ] as const)('%s: %s', (_name, verdict, endpoint, view, expected) => {
    const facts = { pin: verdict, endpoint: ip(endpoint), proxy: view, openedMs: 1000, nowMs: 12_000 };
    expect(contradictionOf(facts)).toBe(expected);
  });

  test('asked before the connection was opened, or too long ago, it contradicts nothing', () => {
    const facts = { pin: left('stale'), endpoint: ip('127.0.0.11:80'), proxy: proxy() };
    expect(contradictionOf({ ...facts, openedMs: 10_000, nowMs: 12_000 })).toBeUndefined();
    expect(contradictionOf({ ...facts, openedMs: 1000, nowMs: 70_000 })).toBe('proxy_not_listing');
    expect(contradictionOf({ ...facts, openedMs: 1000, nowMs: 70_001 })).toBeUndefined();
  });
});

describe('whether a connection can be open', () => {
  const logical = proxy({ type: 'LOGICAL_DNS' });
  const further = proxy({ hosts: new Map([...proxy().hosts, ['127.0.0.14:80', host(undefined)]]) });
  const nobody = { hosts: new Map([['127.0.0.12:80', host(0)]]), activeConnections: 0 };

  test.each<[string, ProxyView | undefined, string, boolean | undefined]>([
    ['all connections are accounted for elsewhere', proxy(), '127.0.0.11:80', false],
    ['all are accounted for, and the listed host has none', proxy(), '127.0.0.13:80', false],
    ['the host has one', proxy(), '127.0.0.12:80', true],
    ['one belongs to no listed host', proxy({ activeConnections: 2 }), '127.0.0.11:80', undefined],
    [
      'one belongs to no listed host, and this one has none',
      proxy({ activeConnections: 2 }),
      '127.0.0.13:80',
      undefined,
    ],
    ['some were opened while it was asked', proxy({ openedMeanwhile: true }), '127.0.0.11:80', undefined],
    ['all were closed while it was asked', proxy({ openedMeanwhile: true, ...nobody }), '127.0.0.11:80', false],
    ['the cluster has none', proxy(nobody), '127.0.0.11:80', false],
    ['the total is not kept', proxy({ activeConnections: undefined }), '127.0.0.11:80', undefined],
    ['LOGICAL_DNS counts old connections as the new address', logical, '127.0.0.11:80', undefined],
    ['LOGICAL_DNS, and the new address may have none of its own', logical, '127.0.0.12:80', undefined],
    ['LOGICAL_DNS without any', proxy({ type: 'LOGICAL_DNS', ...nobody }), '127.0.0.11:80', false],
    ['a host has a further address', further, '127.0.0.14:80', undefined],
    ['a host has a further address, and this one is none of them', further, '127.0.0.11:80', undefined],
    ['the type is not known yet', proxy({ type: undefined, ...nobody }), '127.0.0.11:80', undefined],
    ['an aggregate', proxy({ type: 'envoy.clusters.aggregate', ...nobody }), '127.0.0.11:80', undefined],
    ['the answer is too old', proxy({ lastAnswerMs: -50_000 }), '127.0.0.11:80', undefined],
    ['the proxy is not asked', undefined, '127.0.0.11:80', undefined],
  ])('%s: %s', (_name, view, endpoint, expected) => {
    expect(mayHoldConnection(view, ip(endpoint), 12_000)).toBe(expected);
  });

  test('an endpoint without a port is every host with its address, a pipe is its path', () => {
    const bare: Endpoint = { text: '127.0.0.12', kind: 'ip', ip: '127.0.0.12', port: undefined };
    expect(mayHoldConnection(proxy(), bare, 12_000)).toBe(true);
    expect(mayHoldConnection(proxy(), { ...bare, ip: '127.0.0.1' }, 12_000)).toBe(false);
    const pipe: Endpoint = { text: '/run/app.sock', kind: 'pipe', ip: undefined, port: undefined };
    const piped = proxy({ hosts: new Map([['/run/app.sock', host(1)]]) });
    expect(mayHoldConnection(piped, pipe, 12_000)).toBe(true);
  });
});
