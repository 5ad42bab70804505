import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { runAttach } from '../support/attach.ts';
import { type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts';
import type { KubernetesObject } from '../support/kubernetes-requests.ts';
import { needPart } from '../support/part.ts';
import { until } from '../support/until.ts';

/* Istio's own CRDs on a real API server, their rules (CEL) included, take what `sidelight attach` writes. */
const server = new Cleanup();
afterAll(() => server.run());
let started: Promise<KubernetesApi> | undefined;

function objects(text: string): KubernetesObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject);
}

async function istioApi(context: TestContext): Promise<KubernetesApi> {
  const crds = needPart(context, 'ISTIO_CRDS');
  started ??= startKubernetesApi(context, server).then(async (api) => {
    const filters = objects(readFileSync(crds, 'utf8')).filter(({ metadata }) =>
      metadata.name.startsWith('envoyfilters.'),
    );
    expect(filters).toHaveLength(1);
    for (const crd of filters) await api.admin.apply(crd);
    for (const name of ['shop', 'istio-system'])
      await api.admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const served = () => api.admin.ask('GET', '/apis/networking.istio.io/v1alpha3/envoyfilters');
    await until('EnvoyFilters', async () => (await served()).status === 200);
    return api;
  });
  return started;
}

const places = ['', ' --service sidelight.sidelight', ' --uds /run/sidelight/grpc.sock'];
const commands = [
  '--to sidecar-outbound --namespace shop --profile full',
  '--to sidecar-outbound --namespace shop --selector app=cart,tier=web --port 8080',
  '--to sidecar-outbound --mesh --profile tag --istio 1.28 --inject --sample 10%',
  '--to sidecar-outbound --to sidecar-inbound --namespace shop --no-tcp',
  '--to sidecar-inbound --namespace shop --port 8080 --profile full --sample 100%',
  '--to waypoint --namespace shop --profile full',
  '--to waypoint --mesh',
  '--to waypoint --namespace shop --only cart.shop.svc.cluster.local:80',
  '--to gateway --namespace shop --selector istio=ingressgateway --profile full',
  '--to gateway --namespace shop --gateway front',
];

describe.each(places)('where Sidelight is found by%s', (place) => {
  it.for(commands)('%s', async (command, context) => {
    const api = await istioApi(context);
    const filters = objects(runAttach(...`${command}${place}`.split(' ')));
    expect(filters.length).toBeGreaterThan(0);
    for (const filter of filters) {
      const taken = await api.admin.apply(filter, { dryRun: true });
      // Nothing was pruned: each field is one of the schema.
      expect(taken).toMatchObject({ spec: filter['spec'] as object });
    }
  });
});

it('refuse what attach does not write: a selector and targets at once', async (context) => {
  const api = await istioApi(context);
  const [filter] = objects(runAttach('--to', 'waypoint', '--namespace', 'shop'));
  const spec = { ...(filter?.['spec'] as object), workloadSelector: { labels: { app: 'cart' } } };
  await expect(api.admin.apply({ ...(filter as KubernetesObject), spec }, { dryRun: true })).rejects.toThrow(
    'only one of targetRefs or workloadSelector can be set',
  );
});
