import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { discovering } from '../support/discovery.ts';
import { startKubernetesApi } from '../support/kubernetes-api.ts';
import { sliceOf } from '../support/slices.ts';
import { until } from '../support/until.ts';

/* A namespace full of slices, few of which carry traffic. With 20,000 of them: docs/operating.md. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapMiB(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

const podsPerSlice = 200;

function crowd(i: number) {
  const pods = Array.from({ length: podsPerSlice }, (_, pod) => ({
    ip: `10.${i >> 8}.${i & 255}.${pod + 1}`,
    uid: `a-pod-with-a-long-name-${i}-${pod}`,
  }));
  return sliceOf({ namespace: 'default', service: `service-${i}` }, pods);
}

it('of 800 slices those of the services with traffic are kept, be they few or many, and the others take no memory', async (context) => {
  const api = await startKubernetesApi(context, cleanup);
  const path = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
  for (let i = 0; i < 800; i += 1) await api.admin.ask('POST', path, crowd(i));
  const access = { kubeconfig: api.kubeconfig(api.adminToken) };
  const kubernetes = { access, namespaces: undefined, watchMs: 20_000, timeoutMs: 10_000, staleAfterMs: 60_000 };
  const grownBy: number[] = [];
  for (const services of [3, 80, 700]) {
    const before = heapMiB();
    const { discovery, errors } = discovering(cleanup, { kubernetes, maxClusters: 1000 });
    for (let i = 0; i < services; i += 1) discovery.watch(`outbound|80||service-${i}.default.svc.cluster.local`);
    const views = () => discovery.snapshot().clusters();
    await until(
      'all lists',
      () => views().filter(({ listed }) => listed.size === podsPerSlice).length === services,
      40_000,
    );
    expect(views()).toHaveLength(services);
    grownBy.push(heapMiB() - before);
    expect(errors).toEqual([]);
    discovery.stop();
  }
  const [few = 0, some = 0, many = 0] = grownBy;
  // With more than 60 services every slice is read: what is kept grows with those that carry traffic all the same.
  expect(some).toBeLessThan(many / 3);
  expect(few).toBeLessThan(some);
});
