import { afterEach, expect, it, type TestContext } from 'vitest';
import { ExpectedPods } from '../../src/discovery/kubernetes/expected-pods.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import type { ExpectedReporters } from '../../src/model/expected-reporter.ts';
import { type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts';
import { logClient } from '../support/log-client.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { roleOf } from '../support/slices.ts';
import { until } from '../support/until.ts';

/* Who should report, by the pods that a real API server lists. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const namespace = 'shop';
const selectors = [{ namespace, selector: 'app=cart' }];
/** A pod counts from its second minute on. */
const later = () => Date.now() + 61_000;

/** Running pods of these names, with the label `app: cart`, and a kubeconfig that may list pods and no more. */
async function setUp(context: TestContext, names: readonly string[]) {
  const api = await startKubernetesApi(context, cleanup);
  await api.admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  for (const name of names) await addPod(api, name);
  for (const object of roleOf({ namespace, account: 'reader', resource: 'pods' }, ['list']))
    await api.admin.apply(object);
  const token = await api.serviceAccountToken(namespace, 'reader');
  const path = `/api/v1/namespaces/${namespace}/pods`;
  // RBAC is answered from a cache, which must have heard of the role.
  await until('the role', async () => (await api.as(token).ask('GET', path)).status === 200);
  return { api, kubeconfig: api.kubeconfig(token) };
}

async function addPod(api: KubernetesApi, name: string, app = 'cart', phase = 'Running'): Promise<void> {
  const metadata = { name, namespace, labels: { app } };
  const spec = { containers: [{ name: 'app', image: 'app' }] };
  await api.admin.apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`;
  const { status } = await api.admin.ask('PATCH', path, { status: { phase } }, 'application/merge-patch+json');
  expect(status).toBe(200);
}

function expecting(kubeconfig: string, now = later) {
  const errors: string[] = [];
  const pods = new ExpectedPods({
    access: { kubeconfig },
    selectors,
    timeoutMs: 1000,
    staleAfterMs: 3000,
    now,
    onError: ({ message }) => errors.push(message),
  });
  cleanup.defer(() => pods.stop());
  pods.start();
  const names = () => pods.list().pods.map(({ pod }) => pod);
  return { pods, names, errors };
}

it('lists the running pods with the labels, and not those that are new, over, or told to end', async (context) => {
  const { api, kubeconfig } = await setUp(context, ['cart-1', 'cart-2']);
  await addPod(api, 'pay-1', 'pay');
  await addPod(api, 'cart-0', 'cart', 'Succeeded');
  const { pods, names, errors } = expecting(kubeconfig);
  await until('the pods', () => names().length > 0);
  expect(names()).toEqual(['cart-1', 'cart-2']);
  expect(pods.list()).toMatchObject({ subject: 'pods app=cart in shop', lastError: undefined });

  // No kubelet is there to end it, so it stays for its grace.
  const path = `/api/v1/namespaces/${namespace}/pods/cart-2`;
  await api.admin.ask('PATCH', path, { spec: { nodeName: 'node' } }, 'application/merge-patch+json');
  await api.admin.ask('DELETE', path);
  await until('one to leave', () => names().length === 1);

  const young = expecting(kubeconfig, Date.now);
  await until('an answer', () => young.pods.list().lastAnswerMs !== undefined);
  expect(young.names()).toEqual([]);
  expect([...errors, ...young.errors]).toEqual([]);
});

it('without the right, or without the server, the last list stays and says why it grows old', async (context) => {
  const { api, kubeconfig } = await setUp(context, ['cart-1']);
  const none = expecting(api.kubeconfig(await api.serviceAccountToken(namespace, 'nobody')));
  await until('the refusal', () => none.errors.length > 0);
  expect(none.errors[0]).toContain('pods is forbidden');
  expect(none.pods.list()).toMatchObject({ pods: [], lastAnswerMs: undefined });
  expect(none.pods.count()).toBeUndefined();

  const { pods, names } = expecting(kubeconfig);
  await until('the pods', () => names().length === 1);
  await api.stop();
  await until('the failure', () => pods.list().lastError !== undefined);
  const stopped = pods.list();
  expect(stopped).toMatchObject({ pods: [{ namespace, pod: 'cart-1' }] });
  await api.start();
  await until('it to heal', () => (pods.list().lastAnswerMs ?? 0) > (stopped.lastAnswerMs ?? 0));
  expect(pods.list().lastError).toBeUndefined();
});

it('the service says of how many pods how many report, and which do not', async (context) => {
  const { kubeconfig } = await setUp(context, ['cart-1', 'cart-2', 'cart-3']);
  const sidelight = cleanup.use(
    await startTestSidelight(
      { discovery: { kubernetes: { enabled: true, kubeconfig, expectedReporters: selectors } } },
      {},
      later,
    ),
  );
  const client = logClient(sidelight.grpcPort, 'sidecar~10.0.0.1~cart-1.shop~shop.svc.cluster.local');
  cleanup.defer(() => client.close());
  client.stream();
  type Expected = Pick<ExpectedReporters, 'subject'> & {
    pods: number;
    reporting: number;
    missing: unknown[];
    stale: boolean;
  };
  const expected = async () => (await sidelight.json<{ expected: Expected }>('/api/v1/reporters')).expected;
  await until('the pods', async () => (await expected()).reporting === 1);
  expect(await expected()).toMatchObject({
    pods: 3,
    missing: [
      { namespace, pod: 'cart-2' },
      { namespace, pod: 'cart-3' },
    ],
    stale: false,
  });
  expect(await sidelight.metric('sidelight_coverage_expected')).toBe(3);
});
