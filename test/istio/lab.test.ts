import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { efcheckFacts, freeNet, istioPorts, startIstioSidecar, startIstioWaypoint } from '../support/istio.ts';
import { needPart } from '../support/part.ts';

/* The lab itself: Istio's generator, and a stock Envoy that runs on what it generates. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const sidelightPort = 50_051;

async function startWeb(net: string): Promise<Upstreams> {
  const ips = [11, 12, 13].map((last) => `${net}.${last}`);
  return cleanup.use(await Upstreams.start({ ips, port: istioPorts.endpoint }));
}

describe.each([
  ['a sidecar', startIstioSidecar],
  ['a waypoint, over HBONE to it and from it', startIstioWaypoint],
])('%s', (_, start) => {
  it('carries traffic to every endpoint of its service', async (context: TestContext) => {
    const net = await freeNet();
    const web = await startWeb(net);
    const proxy = await start(context, cleanup, { net, sidelightPort });
    const client = await proxy.client();
    for (let sent = 0; sent < 60; sent += 1) expect((await client.request('/')).status).toBe(200);
    for (const last of [11, 12, 13]) expect(web.requests(`${net}.${last}`)).toBeGreaterThan(0);
  });
});

describe('the generator', () => {
  it('tells the clusters of a proxy', (context) => {
    const facts = efcheckFacts(context, cleanup, ['base.yaml', 'sidelight.yaml'], { proxy: 'sidecar' });
    expect(facts.filter((fact) => fact.startsWith('cds outbound|')).map((fact) => fact.split(' ')[1])).toEqual([
      'outbound|50051||sidelight.sidelight.svc.cluster.local',
      'outbound|8080||web.app.svc.cluster.local',
    ]);
  });

  it('takes a field that it does not know for an error', (context) => {
    needPart(context, 'EFCHECK');
    const typo = `
      apiVersion: networking.istio.io/v1alpha3
      kind: EnvoyFilter
      metadata: { name: typo, namespace: app }
      spec:
        configPatches:
          - applyTo: CLUSTER
            match: { context: SIDECAR_OUTBOUND }
            patch: { operation: MERGE, value: { conect_timeout: 1s } }`;
    const facts = () => efcheckFacts(context, cleanup, ['base.yaml', typo], { proxy: 'sidecar' });
    expect(facts).toThrow('conect_timeout');
  });
});
