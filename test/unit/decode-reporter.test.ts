import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { reporterOf, reporterOfNode } from '../../src/decode/reporter.ts';

const metadata = (values: Record<string, string>) => ({
  fields: Object.fromEntries(Object.entries(values).map(([name, stringValue]) => [name, { stringValue }])),
});

test('an Istio sidecar says kind, pod and namespace in its id, and its workload in its metadata', () => {
  const node = {
    id: 'sidecar~10.0.0.5~shop-7d9f.store~store.svc.cluster.local',
    cluster: 'shop.store',
    metadata: metadata({ WORKLOAD_NAME: 'shop' }),
    userAgentBuildVersion: { version: { majorNumber: 1, minorNumber: 40 } },
  };
  expect(reporterOfNode(node, 256)).toEqual({
    kind: 'sidecar_outbound',
    workload: 'shop',
    namespace: 'store',
    pod: 'shop-7d9f',
    nodeId: 'sidecar~10.0.0.5~shop-7d9f.store~store.svc.cluster.local',
    envoyVersion: '1.40.0',
  });
});

test.each([
  ['waypoint~10.0.0.5~wp-1.store~store.svc.cluster.local', 'waypoint'],
  ['router~10.0.0.5~istio-ingress-1.istio-system~x', 'gateway'],
  ['router', 'envoy'],
  ['constructor~10.0.0.5~p.n~d', 'envoy'],
  ['envoy-front-1', 'envoy'],
])('the node %s is a %s', (id, kind) => {
  expect(reporterOfNode({ id }, 256).kind).toBe(kind);
});

test('a dot in a pod name does not move the namespace; metadata wins over the id', () => {
  const id = 'sidecar~10.0.0.5~a.b.store~d';
  expect(reporterOfNode({ id }, 256)).toMatchObject({ pod: 'a.b', namespace: 'store' });
  const told = { id, metadata: metadata({ NAMESPACE: 'other', NAME: 'pod-2' }) };
  expect(reporterOfNode(told, 256)).toMatchObject({ pod: 'pod-2', namespace: 'other' });
});

test.each([
  ['sidecar~10.0.0.5~shop-7d9f.store~d', 'shop.store', 'shop'],
  ['waypoint~10.0.0.5~wp-1.store~d', 'wp.v2.store', 'wp.v2'],
  ['sidecar~10.0.0.5~shop-7d9f.store~d', 'istio-proxy', 'istio-proxy'],
  ['sidecar~10.0.0.5~shop-7d9f.store~d', '.store', '.store'],
  ['sidecar~10.0.0.5~shop-7d9f.store~d', '', 'sidecar~10.0.0.5~shop-7d9f.store~d'],
])(
  "Istio's node %s of %s, without metadata as in a tagged request, is of the same workload as with it",
  (id, cluster, workload) => {
    expect(reporterOfNode({ id, cluster }, 256)).toMatchObject({ workload, namespace: 'store' });
  },
);

test.each([
  [{ id: 'n1', cluster: 'front' }, 'front'],
  [{ id: 'front.store', cluster: 'front.store' }, 'front.store'],
  [{ id: 'n1' }, 'n1'],
  [{}, 'envoy'],
  [undefined, 'envoy'],
])('the workload of %j is %s', (node, workload) => {
  expect(reporterOfNode(node, 256)).toMatchObject({ kind: 'envoy', workload });
});

test('texts are cut and the old version field is read', () => {
  const reporter = reporterOfNode({ id: 'x'.repeat(300), userAgentVersion: '1.36.4' }, 16);
  expect(reporter).toMatchObject({ nodeId: 'x'.repeat(16), workload: 'x'.repeat(16), envoyVersion: '1.36.4' });
});

test('only a sidecar has an inbound side', () => {
  const sidecar = reporterOfNode({ id: 'sidecar~10.0.0.5~p.n~d' }, 256);
  const waypoint = reporterOfNode({ id: 'waypoint~10.0.0.5~p.n~d' }, 256);
  expect(reporterOf(sidecar, 'inbound|8080||').kind).toBe('sidecar_inbound');
  expect(reporterOf(sidecar, 'outbound|80||a.n.svc').kind).toBe('sidecar_outbound');
  expect(reporterOf(sidecar, 'InboundPassthroughCluster').kind).toBe('sidecar_inbound');
  expect(reporterOf(sidecar, 'PassthroughCluster').kind).toBe('sidecar_outbound');
  expect(reporterOf(waypoint, 'inbound-vip|80|http|a.n.svc').kind).toBe('waypoint');
  expect(reporterOf(sidecar, undefined).kind).toBe('sidecar_outbound');
  expect(reporterOf(waypoint, 'inbound|8080||').kind).toBe('waypoint');
});

test('what is kept of a node does not hold the whole of its id in memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const idOf = (index: number) => `sidecar~10.0.0.5~pod-of-a-long-name-${index}.namespace-of-a-long-name~`;
  const usedMiB = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  const before = usedMiB();
  const kept = Array.from({ length: 100 }, (_, index) =>
    reporterOfNode({ id: Buffer.from(idOf(index) + 'd'.repeat(500_000)).toString() }, 256),
  );
  expect(usedMiB() - before).toBeLessThan(10);
  expect(kept[99]).toMatchObject({ pod: 'pod-of-a-long-name-99', namespace: 'namespace-of-a-long-name' });
});
