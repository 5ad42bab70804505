import { afterEach, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { startKubernetesApi } from '../support/kubernetes-api.ts';

/* What the tests of the Kubernetes source take for granted of their API server. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';

it('keeps its objects over a restart, forgets old versions when told, and a service account may what RBAC gives it', async (context) => {
  const api = await startKubernetesApi(context, cleanup);
  await api.admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'cart-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'cart' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }],
  };
  await api.admin.apply(slice);
  await expect(api.admin.apply({ ...slice, endpoint: [] })).rejects.toThrow('.endpoint: field not declared in schema');

  const reader = api.as(await api.serviceAccountToken('shop', 'reader'));
  expect(await reader.ask('GET', slices)).toMatchObject({ status: 403, body: { reason: 'Forbidden' } });

  await api.stop();
  await api.compact();
  await api.start();
  expect(await api.admin.ask('GET', slices)).toMatchObject({
    status: 200,
    body: { items: [{ endpoints: [{ addresses: ['10.0.0.1'] }] }] },
  });
  const watch = await api.admin.ask('GET', `${slices}?watch=1&timeoutSeconds=5&resourceVersion=1`);
  expect(JSON.stringify(watch)).toMatch(/too old resource version|required revision has been compacted/);
});
