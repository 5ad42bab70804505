import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { runAttach } from '../support/attach.ts';
import { hidden, objectsOf, shown, sidelightCluster } from '../support/istio/hidden-service.ts';
import { efcheckFacts, freeNet, istioPorts, startIstioSidecar, startIstioWaypoint } from '../support/istio.ts';
import { doctorReport, worries } from '../support/run-doctor.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* What the doctor says of EnvoyFilters, beside what Istio's own generator does with them. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const fixtures = new URL('../fixtures/istio/', import.meta.url);
const mesh = ['ambient.yaml', 'sidelight.yaml', 'waypoint.yaml'];
/** What the fixtures add: a filter, a cluster, a timeout, or something to routes. */
const ours = /ext_proc\.lab|cds lab|attempt_count/;

const waypointFiles = (folder: 'broken' | 'working') =>
  readdirSync(new URL(`${folder}/`, fixtures)).filter((file) => file.startsWith('waypoint'));

function landed(context: TestContext, folder: string, file: string): string[] {
  const yaml = readFileSync(new URL(`${folder}/${file}`, fixtures), 'utf8');
  return efcheckFacts(context, cleanup, [...mesh, yaml], { proxy: 'waypoint' }).filter((fact) => ours.test(fact));
}

/** Those that do land, in a wrong place or without what they need. */
const wrongPlace = /^waypoint-(any-listener|no-listener|not-referenced|virtual-host|http-route)/;

describe('an EnvoyFilter that the doctor calls broken', () => {
  it.for(waypointFiles('broken').filter((file) => !wrongPlace.test(file)))('%s lands nowhere', (file, context) => {
    expect(landed(context, 'broken', file)).toEqual([]);
  });

  it.for(['waypoint-any-listener.yaml', 'waypoint-no-listener.yaml'])('%s lands on the tunnel', (file, context) => {
    expect(landed(context, 'broken', file).some((fact) => fact.startsWith('lds connect_terminate'))).toBe(true);
  });
});

describe('an EnvoyFilter with which the doctor is content', () => {
  it.for(waypointFiles('working'))('%s lands, and not on the tunnel', (file, context) => {
    const facts = landed(context, 'working', file);
    expect(facts).not.toEqual([]);
    expect(facts.filter((fact) => fact.startsWith('lds connect_terminate'))).toEqual([]);
  });
});

describe('the cluster of Sidelight', () => {
  const clusters = (context: TestContext, given: Parameters<typeof objectsOf>[0]) =>
    efcheckFacts(context, cleanup, ['base.yaml', objectsOf(given)], {
      proxy: 'sidecar',
      labels: { app: 'client' },
    }).filter((fact) => fact.startsWith(`cds ${sidelightCluster}`));
  it.for(hidden)('is not made beside $name', (given, context) => expect(clusters(context, given)).toEqual([]));
  it.for(shown)('is made beside $name', (given, context) => expect(clusters(context, given)).toHaveLength(1));
});

describe.each([
  ['sidecar', startIstioSidecar, '--to sidecar-outbound --selector app=client'],
  ['waypoint', startIstioWaypoint, '--to waypoint'],
] as const)('a %s on what Istio generates, attached', (proxy, start, target) => {
  it.for(['--service sidelight.sidelight', '--sample 50%'])('by %s: no false alarm', async (how, context) => {
    const net = await freeNet();
    const sidelight = cleanup.use(await startTestSidelight());
    cleanup.use(await Upstreams.start({ ips: [`${net}.11`, `${net}.12`, `${net}.13`], port: istioPorts.endpoint }));
    const isOwnCluster = !how.startsWith('--service');
    const where = isOwnCluster ? `${how} --address 127.0.0.1:${sidelight.grpcPort}` : how;
    const flags = `${target} --namespace app --profile full --message-timeout 900ms ${where}`;
    const yaml = [runAttach(...flags.split(' '))];
    const istio = await start(context, cleanup, { net, sidelightPort: sidelight.grpcPort, yaml });
    const look = () => doctorReport([`http://127.0.0.1:${istio.envoy.admin.port}`]);
    await until('the health check', async () => !worries(await look()).includes('cluster-unreachable'));
    const web = await istio.client();
    for (let sent = 0; sent < 5; sent += 1) expect((await web.request('/')).status).toBe(200);
    const report = await look();
    // On a waypoint nothing can be merged into the mesh's own cluster, no health check either.
    expect(worries(report)).toEqual(proxy === 'waypoint' && !isOwnCluster ? ['cluster-unbounded'] : []);
    expect(report.proxies[0]?.attached.length).toBeGreaterThan(0);
  });
});
