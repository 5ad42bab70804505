import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts';
import type { KubernetesObject } from '../support/kubernetes-requests.ts';
import { type Manifest, oneOf, parseManifests } from '../support/manifests.ts';
import { needPart } from '../support/part.ts';

/* The manifests as kubectl builds them: they are what Kubernetes says that they should be, and do what they are for. */
const overlays = ['base', 'overlays/monitoring', 'overlays/restricted', 'overlays/same-pod', 'example'] as const;
type Overlay = (typeof overlays)[number];

const cleanup = new Cleanup();
afterEach(() => cleanup.run());
const server = new Cleanup();
afterAll(() => server.run());
let started: Promise<KubernetesApi> | undefined;

function build(context: TestContext, overlay: Overlay): string {
  const folder = fileURLToPath(new URL(`../../k8s/${overlay}`, import.meta.url));
  const built = spawnSync(needPart(context, 'KUBECTL'), ['kustomize', folder], { encoding: 'utf8' });
  // A warning tells of what kustomize will give up.
  expect([built.status, built.stderr]).toEqual([0, '']);
  return built.stdout;
}

function write(name: string, text: string): string {
  const file = path.join(cleanup.use(tempDir()).path, name);
  writeFileSync(file, text);
  return file;
}

/** With a Namespace for each that is named: one that takes only pods without any right. */
async function serverFor(context: TestContext, objects: readonly Manifest[]): Promise<KubernetesApi> {
  started ??= startKubernetesApi(context, server);
  const api = await started;
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  for (const name of new Set(objects.flatMap(({ metadata: { namespace } }) => namespace ?? [])))
    await api.admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  return api;
}

/** The pods that the Deployments would make. */
function podsOf(objects: readonly Manifest[]): KubernetesObject[] {
  return objects
    .filter(({ kind }) => kind === 'Deployment')
    .map(({ metadata: { name, namespace = '' }, spec: { template } }) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...template.metadata, name, namespace },
      spec: template.spec,
    }));
}

describe.each(overlays)('k8s/%s', (overlay) => {
  it.for(['1.32', '1.36'])('is valid for Kubernetes %s', (version, context) => {
    const validate = needPart(context, 'KUBERNETES_VALIDATE');
    const file = write('built.yaml', build(context, overlay));
    const { status, stdout, stderr } = spawnSync(validate, ['--strict', '-k', version, file], { encoding: 'utf8' });
    expect(`${stdout}${stderr}`).not.toContain('did not validate');
    expect(status).toBe(0);
  });

  it('is taken by a real API server, and its pods by a namespace that refuses every right', async (context) => {
    const objects = parseManifests(build(context, overlay));
    const api = await serverFor(context, objects);
    for (const object of [...objects, ...podsOf(objects)])
      await expect(api.admin.apply(object as KubernetesObject, { dryRun: true })).resolves.toMatchObject({
        kind: object.kind,
      });
  });
});

it('a pod that asks for more is refused by such a namespace', async (context) => {
  const objects = parseManifests(build(context, 'base'));
  const api = await serverFor(context, objects);
  const [pod] = podsOf(objects) as [KubernetesObject & { spec: { securityContext: object } }];
  pod.spec.securityContext = {};
  await expect(api.admin.apply(pod, { dryRun: true })).rejects.toThrow('violates PodSecurity \\"restricted');
});

it.for([
  ['base', 'sidelight'],
  ['overlays/restricted', 'sidelight'],
  ['overlays/same-pod', 'sidelight-same-pod'],
] as const)('%s: `sidelight serve --check` takes the config that is mounted', ([overlay, name], context) => {
  const objects = parseManifests(build(context, overlay));
  const { volumes } = oneOf(objects, 'Deployment').spec.template.spec;
  const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.startsWith(`${name}-`));
  expect(volumes).toContainEqual(expect.objectContaining({ configMap: { name: map?.metadata.name } }));
  const file = write('sidelight.yaml', map?.data?.['sidelight.yaml'] ?? '');
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const checked = spawnSync(process.execPath, [main, 'serve', '--check', '--config', file], { encoding: 'utf8' });
  expect(checked).toMatchObject({ status: 0, stdout: 'The config is valid.\n', stderr: '' });
});

describe('RBAC', () => {
  const slices = (namespace: string) => `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  const everywhere = '/apis/discovery.k8s.io/v1/endpointslices';
  const watch = '?watch=1&timeoutSeconds=1';

  /** The statuses of what the service account asks for, once it has what the overlay gives it. */
  async function asked(context: TestContext, overlay: Overlay, requests: readonly (readonly [string, string])[]) {
    const objects = parseManifests(build(context, overlay));
    const api = await serverFor(context, objects);
    const given = objects.filter(({ apiVersion }) => apiVersion.startsWith('rbac.')) as KubernetesObject[];
    for (const object of given) await api.admin.apply(object);
    cleanup.defer(async () => {
      for (const object of given) await api.admin.remove(object);
    });
    const account = api.as(await api.serviceAccountToken('sidelight', 'sidelight'));
    const statuses: number[] = [];
    for (const [method, where] of requests) statuses.push((await account.ask(method, where)).status);
    return statuses;
  }

  it('base: lists and watches EndpointSlices everywhere, and may do nothing else', async (context) => {
    const allowed = [everywhere, everywhere + watch, slices('shop'), slices('shop') + watch];
    const refused = [
      ['GET', `${slices('shop')}/cart-1`],
      ['POST', slices('shop')],
      ['DELETE', `${slices('shop')}/cart-1`],
      ...['pods', 'services', 'secrets', 'configmaps', 'nodes'].map((kind) => ['GET', `/api/v1/${kind}`] as const),
    ] as const;
    const requests = [...allowed.map((where) => ['GET', where] as const), ...refused];
    expect(await asked(context, 'base', requests)).toEqual([...allowed.map(() => 200), ...refused.map(() => 403)]);
  });

  it('restricted: the same in the named namespaces alone', async (context) => {
    const wheres = [slices('shop'), slices('payments') + watch, slices('default'), everywhere];
    const requests = wheres.map((where) => ['GET', where] as const);
    expect(await asked(context, 'overlays/restricted', requests)).toEqual([200, 200, 403, 403]);
  });
});
