import { describe, expect, it } from 'vitest';
import { clusterView } from '../../src/discovery/cluster-view.ts';
import { dnsGrace, type HeldTtl, holdTtl, noTtl } from '../../src/discovery/grace.ts';
import { learn, nothingKnown } from '../../src/discovery/knowledge.ts';
import { judgePin } from '../../src/judge/pin.ts';

/*
 * A name with a TTL of 60 s moves at 1,000,000; Sidelight asks every 5 s, and the config says nothing of the cluster. A
 * proxy that asked its caching resolver just before may use the old address, over new connections too, for the TTL.
 */
const leftAtMs = 1_000_000;
const second = 1000;
const settings = { staleAfterMs: 3_600_000, sameAsProxy: true, graceMs: undefined };

/** What Sidelight knows after these TTLs of the old address and the last one of the new address, told every 5 s. */
function viewAfter(ttlSeconds: readonly number[]) {
  let ttl: HeldTtl = noTtl;
  let known = nothingKnown;
  ttlSeconds.forEach((seconds, i) => {
    const isMoved = i === ttlSeconds.length - 1;
    const atMs = leftAtMs - (ttlSeconds.length - 1 - i) * 5 * second;
    ttl = holdTtl(ttl, seconds * second, atMs);
    const endpoints = [isMoved ? '127.0.0.12' : '127.0.0.11'];
    known = learn(known, { endpoints, atMs, grace: dnsGrace(ttl.longestMs, 5 * second) }, 10).knowledge;
  });
  return clusterView({ cluster: 'app', source: 'dns', subject: 'app.test' }, known, settings);
}

/** The pin of a request so long after the move, over a connection that was opened so long after it. */
function pinAt(view: ReturnType<typeof viewAfter>, requestMs: number, openedMs: number) {
  const endpoint = { text: '127.0.0.11:80', kind: 'ip', ip: '127.0.0.11', port: 80 } as const;
  const startMs = leftAtMs + requestMs;
  return judgePin({
    view,
    endpoint,
    connectionOpenedMs: leftAtMs + openedMs,
    requestStartMs: startMs,
    nowMs: startMs,
    clockUncertaintyMs: 0,
  }).pin;
}

describe.each([
  ['an authoritative server tells the whole TTL each time', [60, 60, 60, 60]],
  ['a caching resolver tells what is left of it', [60, 55, 50, 45, 60]],
  ['the new answer has a short TTL: the proxy still holds the old one', [60, 60, 5]],
])('a proxy that refreshes late: %s', (_case, ttls) => {
  const view = viewAfter(ttls);

  it.each([
    ['a connection of before', -second],
    ['a connection of a second ago', 64 * second],
  ])('is draining until TTL + refresh is over: %s', (_what, openedMs) => {
    expect(pinAt(view, 64.9 * second, openedMs)).toBe('draining');
  });

  it('is stale afterwards, and stale_view where the connection was opened when no old answer could hold any more', () => {
    expect(pinAt(view, 65 * second, -second)).toBe('stale');
    expect(pinAt(view, 66 * second, 64.9 * second)).toBe('stale');
    expect(pinAt(view, 66 * second, 65 * second)).toBe('stale_view');
  });
});
