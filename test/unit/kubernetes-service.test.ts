import { describe, expect, test } from 'vitest';
import { type KnownService, learnSlices, unknownService } from '../../src/discovery/kubernetes/known-service.ts';
import { serviceOfCluster } from '../../src/discovery/kubernetes/service-name.ts';
import { readSlice, type SliceEndpoint } from '../../src/discovery/kubernetes/slice.ts';

/* What EndpointSlices mean. */

function pod(ip: string, uid: string | undefined, more: Partial<SliceEndpoint> = {}): SliceEndpoint {
  return { ip, uid, ready: true, terminating: false, ...more };
}

/** What is known after these states, one each 10 s, the first at 10 s; each may have been so 1 s earlier. */
function after(...states: SliceEndpoint[][]) {
  return afterSlices(...states.map((state) => [state]));
}

function afterSlices(...states: SliceEndpoint[][][]) {
  let known: KnownService = unknownService;
  let changes: [added: readonly string[], removed: readonly string[]] = [[], []];
  for (const [i, slices] of states.entries()) {
    const atMs = (i + 1) * 10_000;
    const learned = learnSlices(known, slices, { atMs, fromMs: atMs - 1000 }, 10);
    known = learned.known;
    changes = [learned.added, learned.removed];
  }
  const { knowledge, ...rest } = known;
  return { ...rest, listed: knowledge.listed, left: knowledge.left.byEndpoint, changes, knowledge };
}

describe('the Service of a cluster', () => {
  test.each([
    ['outbound|80||cart.shop.svc.cluster.local', undefined, { namespace: 'shop', service: 'cart' }],
    ['outbound|80|v2|cart.shop.svc.corp.example', undefined, { namespace: 'shop', service: 'cart' }],
    ['inbound-vip|80|http|cart.shop.svc.cluster.local', undefined, { namespace: 'shop', service: 'cart' }],
    ['inbound-vip|80|http/v2|cart.shop.svc.cluster.local', undefined, { namespace: 'shop', service: 'cart' }],
    ['outbound_.80_.v2_.cart.shop.svc.cluster.local', undefined, { namespace: 'shop', service: 'cart' }],
    ['cart', 'shop/cart', { namespace: 'shop', service: 'cart' }],
    ['outbound|80||cart.shop.svc.cluster.local', 'other/basket', { namespace: 'other', service: 'basket' }],
    ['outbound|443||api.example.com', undefined, undefined],
    ['outbound|443||cart.shop.svc.clusterset.local', undefined, undefined],
    ['outbound|443||*.shop.svc.cluster.local', undefined, undefined],
    ['inbound|8080||', undefined, undefined],
    ['cart', undefined, undefined],
  ])('%s (%s)', (cluster, configured, service) => {
    expect(serviceOfCluster(cluster, configured)).toEqual(service);
  });
});

describe('a slice', () => {
  const slice = (more: object) => ({
    metadata: { name: 'cart-1', labels: { 'kubernetes.io/service-name': 'cart' } },
    addressType: 'IPv4',
    endpoints: [],
    ...more,
  });

  test('an absent condition is ready and does not end; the uid is the pod’s', () => {
    const endpoints = [
      { addresses: ['10.0.0.1'] },
      {
        addresses: ['10.0.0.2'],
        conditions: { ready: false, serving: true, terminating: true },
        targetRef: { uid: 'u' },
      },
      { addresses: ['10.0.0.3'], conditions: {} },
    ];
    expect(readSlice(slice({ endpoints }))).toEqual({
      name: 'cart-1',
      service: 'cart',
      endpoints: [
        pod('10.0.0.1', undefined),
        pod('10.0.0.2', 'u', { ready: false, terminating: true }),
        pod('10.0.0.3', undefined),
      ],
    });
  });

  test('an address of version 6 is canonical; a host name is no address', () => {
    const v6 = { addressType: 'IPv6', endpoints: [{ addresses: ['fd00:0:0::0001'] }] };
    expect(readSlice(slice(v6))?.endpoints).toEqual([pod('fd00::1', undefined)]);
    const names = { addressType: 'FQDN', endpoints: [{ addresses: ['a.example.com'] }] };
    expect(readSlice(slice(names))?.endpoints).toEqual([]);
  });

  test('without endpoints it has none, without a service it is nobody’s', () => {
    expect(readSlice(slice({ endpoints: null }))?.endpoints).toEqual([]);
    expect(readSlice(slice({ metadata: { name: 'own' } }))).toBeUndefined();
  });
});

describe('the endpoints of a service', () => {
  test('are the union of its slices, of both families', () => {
    const { listed, changes } = afterSlices([[pod('10.0.0.1', 'a')], [pod('fd00::1', 'a'), pod('10.0.0.2', 'b')]]);
    expect([...listed.keys()]).toEqual(['10.0.0.1', 'fd00::1', '10.0.0.2']);
    expect(changes).toEqual([[], []]);
  });

  test('one that moves from slice to slice does not leave', () => {
    const moved = afterSlices(
      [[pod('10.0.0.1', 'a')], []],
      [[pod('10.0.0.1', 'a')], [pod('10.0.0.1', 'a')]],
      [[], [pod('10.0.0.1', 'a')]],
    );
    expect([moved.listed.get('10.0.0.1'), moved.left.size, moved.knowledge.changes]).toEqual([
      10_000,
      0,
      { added: 0, removed: 0 },
    ]);
  });

  test('one that is not ready is not listed, and has left if it was', () => {
    const { listed, left, terminating } = after([pod('10.0.0.1', 'a')], [pod('10.0.0.1', 'a', { ready: false })]);
    expect([listed.size, [...left], terminating.size]).toEqual([0, [['10.0.0.1', 20_000]], 0]);
  });

  test('a service without a slice is none that slices speak for; one that had is, though all are gone', () => {
    expect(afterSlices([]).hadSlice).toBe(false);
    expect(afterSlices([[]], []).hadSlice).toBe(true);
  });
});

describe('a pod that ends', () => {
  const ending = pod('10.0.0.1', 'a', { ready: false, terminating: true });

  test('leaves the list when it is told, and is gone when no slice has it', () => {
    const told = after([pod('10.0.0.1', 'a')], [ending]);
    expect([[...told.left], [...told.terminating]]).toEqual([
      [['10.0.0.1', 20_000]],
      [['10.0.0.1', { sinceMs: 20_000, goneMs: undefined }]],
    ]);
    expect(after([pod('10.0.0.1', 'a')], [ending], [ending], [])).toMatchObject({
      left: new Map([['10.0.0.1', 20_000]]),
      terminating: new Map([['10.0.0.1', { sinceMs: 20_000, goneMs: 40_000 }]]),
    });
  });

  test('is not listed though it is ready, and counts as one that left though nobody saw it listed', () => {
    const { listed, left, changes } = after([pod('10.0.0.1', 'a', { terminating: true })]);
    expect([listed.size, [...left], changes]).toEqual([0, [['10.0.0.1', 10_000]], [[], []]]);
  });
});

describe('an address that passes to another pod', () => {
  test('in one and the same event, leaves and comes', () => {
    const { listed, left, earlier, changes, knowledge } = after([pod('10.0.0.1', 'a')], [pod('10.0.0.1', 'b')]);
    expect([[...listed], left.size, changes]).toEqual([[['10.0.0.1', 20_000]], 0, [['10.0.0.1'], ['10.0.0.1']]]);
    expect(knowledge.changes).toEqual({ added: 1, removed: 1 });
    expect([...earlier]).toEqual([
      ['10.0.0.1', [{ leftAtMs: 20_000, graceFromMs: 20_000, nextFromMs: 19_000, nextByMs: 20_000 }]],
    ]);
  });

  test('minutes later, keeps when the first one left, and when the second was first seen, ready or not', () => {
    const { listed, earlier } = after(
      [pod('10.0.0.1', 'a')],
      [],
      [],
      [pod('10.0.0.1', 'b', { ready: false })],
      [pod('10.0.0.1', 'b')],
    );
    expect([...listed]).toEqual([['10.0.0.1', 50_000]]);
    expect([...earlier]).toEqual([
      ['10.0.0.1', [{ leftAtMs: 20_000, graceFromMs: 20_000, nextFromMs: 39_000, nextByMs: 40_000 }]],
    ]);
  });

  test('after the first one ended, its grace runs from when it was gone', () => {
    const ending = pod('10.0.0.1', 'a', { ready: false, terminating: true });
    const { earlier, terminating } = after([pod('10.0.0.1', 'a')], [ending], [], [pod('10.0.0.1', 'b')]);
    expect(earlier.get('10.0.0.1')).toMatchObject([{ leftAtMs: 20_000, graceFromMs: 30_000 }]);
    expect(terminating.size).toBe(0);
  });

  test('while both are in slices, belongs to the one that does not end, and else to the new one', () => {
    const first = pod('10.0.0.1', 'a');
    const both = afterSlices([[first]], [[pod('10.0.0.1', 'b')], [first]], [[first], [pod('10.0.0.1', 'b')]]);
    expect([both.owners.get('10.0.0.1')?.at(-1), both.earlier.get('10.0.0.1')?.length]).toEqual(['b', 1]);
    const ending = afterSlices([[first]], [[pod('10.0.0.1', 'b')], [{ ...first, terminating: true }]]);
    expect([ending.owners.get('10.0.0.1')?.at(-1), ending.listed.size]).toEqual(['b', 1]);
  });

  test('is no other one where a slice names no pod', () => {
    const { earlier } = after([pod('10.0.0.1', 'a')], [pod('10.0.0.1', undefined)], [pod('10.0.0.1', 'a')]);
    expect(earlier.size).toBe(0);
  });

  test('is forgotten with the pods: nothing is kept of an address that is neither there nor among those that left', () => {
    const many = Array.from({ length: 30 }, (_, i) => [pod(`10.0.0.${i}`, `${i}`)]);
    const { owners, left } = after(...many);
    expect([owners.size, left.size]).toEqual([11, 10]);
  });
});
