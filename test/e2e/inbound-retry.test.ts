import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import type { Cluster } from '../../src/lab/envoy-config.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { failover, retry, retryAtNextPriority, toApp, upstream } from '../fixtures/cases/parts.ts';
import { istioId } from '../support/proxy-chain.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { startLoggingEnvoy } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/*
 * Istio's sidecars try again at the door of the workload too: twice, on `reset-before-request`. What that hides, and what
 * it does not.
 */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const sampled = { headers: { traceparent: `00-${caller.traceId}-${caller.spanId}-01` } };

interface Listed {
  reporterKind: string;
  outcome: string;
  cause?: string;
  attempts: { result: string; sent?: boolean }[];
  chain?: { amplification: number };
}

/** What is kept of the trace, in the order in which it is listed once there are so many. */
async function listed(sidelight: TestSidelight, count: number): Promise<Listed[]> {
  let found: Listed[] = [];
  await until(`${count} exchanges`, async () => {
    const path = `/api/v1/exchanges?trace=${caller.traceId}`;
    ({ exchanges: found } = await sidelight.json<{ exchanges: Listed[] }>(path));
    return found.length >= count;
  });
  return found;
}

/** A sidecar as istiod names it: what it passes on to its own workload has a cluster `inbound|…`. */
function startSidecar(sidelight: TestSidelight, workload: string, cluster: Cluster, retries: object) {
  return startLoggingEnvoy(cleanup, workload, {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [cluster],
    routes: [toApp({ cluster: cluster.name, ...retries })],
    adapt: (_, config) => {
      config['node'] = { id: istioId('sidecar', `${workload}-1`), cluster: workload };
    },
  });
}

const inbound = 'inbound|8080||';
const istiosInbound = retry('reset-before-request');

/** Requests that one kind of proxy saw, by outcome. */
const counted = (sidelight: TestSidelight, kind: string, outcome: string) =>
  sidelight.metric('sidelight_requests_total', { reporter_kind: kind, outcome });

describe('the retry at the door of a workload', () => {
  it('hides a refused connect: masked, said by the server’s sidecar, of a request that was never sent', async () => {
    const sidelight = cleanup.use(await startTestSidelight());
    const app = await upstream(cleanup);
    const dead = `127.0.0.12:${await freePort(['127.0.0.12'])}`;
    const cluster = failover(dead, app.addresses[0] ?? '', staticCluster([], { name: inbound }));
    const envoy = await startSidecar(sidelight, 'cart', cluster, retry('reset-before-request', retryAtNextPriority));
    const client = cleanup.use(http1Client(envoy.port('http')));
    expect((await client.request('/', sampled)).status).toBe(200);
    expect(await listed(sidelight, 1)).toMatchObject([
      {
        reporterKind: 'sidecar_inbound',
        outcome: 'masked',
        cause: 'connect_failure',
        attempts: [{ result: 'failed', sent: false }, { result: 'ok' }],
      },
    ]);
    expect(await counted(sidelight, 'sidecar_outbound', 'masked')).toBe(0);
  });

  it('does not hide that the workload closed a kept connection as the request came: Envoy has sent it by then', async () => {
    const sidelight = cleanup.use(await startTestSidelight());
    const app = await upstream(cleanup);
    const server = await startSidecar(
      sidelight,
      'cart',
      staticCluster(app.addresses, { name: inbound }),
      istiosInbound,
    );
    const next = staticCluster([`127.0.0.1:${server.port('http')}`], {
      name: 'outbound|8080||cart.store.svc.cluster.local',
    });
    const outer = await startSidecar(sidelight, 'shop', next, retry('5xx'));
    const client = cleanup.use(http1Client(outer.port('http')));
    expect((await client.request('/')).status).toBe(200);

    // Stopped, the sidecar finds the request first and then the end of its own connection, as when both come at once.
    process.kill(server.pid, 'SIGSTOP');
    const answer = client.request('/', sampled);
    await sleep(100);
    app.cycle();
    await sleep(100);
    process.kill(server.pid, 'SIGCONT');
    expect((await answer).status).toBe(200);
    expect(app.requests()).toBe(2);

    const found = await listed(sidelight, 2);
    expect(found.toSorted((a, b) => a.reporterKind.localeCompare(b.reporterKind))).toMatchObject([
      {
        reporterKind: 'sidecar_inbound',
        outcome: 'failed',
        cause: 'connection_termination',
        attempts: [{ result: 'failed', sent: true }],
      },
      {
        reporterKind: 'sidecar_outbound',
        outcome: 'masked',
        cause: 'status_5xx',
        attempts: [{ result: 'failed', sent: true }, { result: 'ok' }],
        chain: { amplification: 2 },
      },
    ]);
    // One call, two reports: what the one hid, the other could not. Each kind alone is right.
    expect([
      await counted(sidelight, 'sidecar_outbound', 'masked'),
      await counted(sidelight, 'sidecar_outbound', 'failed'),
    ]).toEqual([1, 0]);
    expect([
      await counted(sidelight, 'sidecar_inbound', 'masked'),
      await counted(sidelight, 'sidecar_inbound', 'failed'),
    ]).toEqual([0, 1]);
  });
});
