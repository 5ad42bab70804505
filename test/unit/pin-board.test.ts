import { expect, test } from 'vitest';
import { judgeConnection } from '../../src/flow/pin-board.ts';
import type { ClusterView, DiscoveryView, ProxyView, SourceKind } from '../../src/model/view.ts';
import { connection } from '../support/connections.ts';
import { ip } from '../support/judged.ts';

const leftAtMs = 200_000;

/** 127.0.0.11 left the list of a cluster of this type; its source is `source`. */
function after(type: string, source: SourceKind): DiscoveryView {
  const view: ClusterView = {
    cluster: 'app',
    source,
    subject: 'http://127.0.0.1:9901',
    firstAnswerMs: 0,
    lastAnswerMs: 300_000,
    staleAfterMs: 60_000,
    graceMs: 10_000,
    sameAsProxy: true,
    listed: new Map([['127.0.0.12:80', 0]]),
    left: new Map([['127.0.0.11:80', leftAtMs]]),
    changes: { added: 0, removed: 1 },
    lastError: undefined,
  };
  const proxy = { type } as ProxyView;
  return { cluster: () => view, clusters: () => [view], proxy: () => proxy, proxies: () => [proxy] };
}

const forwardProxy = 'envoy.clusters.dynamic_forward_proxy';

test.each([
  ['http', forwardProxy, 'envoy', 'stale'],
  ['tcp', forwardProxy, 'envoy', 'unknown'],
  ['tcp', forwardProxy, 'file', 'stale'],
  ['tcp', 'STRICT_DNS', 'envoy', 'stale'],
] as const)('what left the list of %s over %s, told by %s, is %s', (layer, type, source, pin) => {
  const seen = connection({
    layer,
    peer: ip('127.0.0.11:80'),
    openedMs: 1000,
    requestStartMs: layer === 'tcp' ? undefined : 290_000,
    clockUncertaintyMs: 0,
  });
  expect(judgeConnection(seen, after(type, source), 300_000).pin).toBe(pin);
});
