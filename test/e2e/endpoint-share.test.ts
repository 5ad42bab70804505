import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { drive } from '../../src/lab/load.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { counts } from '../support/counts.ts';
import { cleaned, endpointOf, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* Which endpoint gets which share of the attempts: four addresses, the last of which always answers 500. */
const everything = new Cleanup();
const good = ['127.0.0.31', '127.0.0.32', '127.0.0.33'];
const bad = '127.0.0.34';
let sidelight: TestSidelight;

beforeAll(async () => {
  const file = path.join(everything.use(tempDir()).path, 'endpoints.yaml');
  const all = `[${[...good, bad].join(', ')}]`;
  const clusters = ['d1', 'd2', 'd3', 'd3-tcp', 'd3-fair'];
  writeFileSync(file, `clusters: { ${clusters.map((name) => `${name}: ${all}`).join(', ')} }\n`);
  sidelight = everything.use(await startTestSidelight({ discovery: { file } }));
});
afterAll(() => everything.run());

async function startUpstreams(cleanup: Cleanup) {
  const upstreams = cleanup.use(await Upstreams.start({ ips: [...good, bad] }));
  upstreams.handle(() => ({ kind: 'respond', status: 500 }), bad);
  return upstreams;
}

async function setUp(cleanup: Cleanup, name: string, extra: Json = {}, route: Json = {}) {
  const upstreams = await startUpstreams(cleanup);
  const envoy = await startReporter(cleanup, name, {
    sidelightPort: sidelight.grpcPort,
    clusters: [staticCluster(upstreams.addresses, { name, extra })],
    routes: [routeTo(name, undefined, route)],
  });
  const client = cleanup.use(http1Client(envoy.port('http'), 8));
  const send = async (total: number) => {
    await drive(() => client.request('/'), { concurrency: 8, total });
    return counts(sidelight, { cluster: name }, client.log.length);
  };
  return { upstreams, client, send, badEndpoint: `${bad}:${upstreams.port}` };
}

/** Eight kept-alive connections over a TCP proxy, which it is that balances, with ten requests over each. */
async function setUpTcp(cleanup: Cleanup, name: string, extra: Json = {}, tcpProxy: Json = {}) {
  const upstreams = await startUpstreams(cleanup);
  const envoy = await startReporter(cleanup, name, {
    sidelightPort: sidelight.grpcPort,
    clusters: [staticCluster(upstreams.addresses, { name, extra })],
    tcpProxy: { cluster: name, ...tcpProxy },
    tcpLogFlushMs: 200,
  });
  const clients = Array.from({ length: 8 }, () => cleanup.use(http1Client(envoy.port('tcp'))));
  /** The statuses of this round. */
  const send = async () => {
    const results = await Promise.all(
      clients.map(async (client) => {
        const before = client.log.length;
        await drive(() => client.request('/'), { concurrency: 1, total: 10 });
        return client.log.slice(before).map(({ status }) => status);
      }),
    );
    return results.flat();
  };
  const open = (labels = {}) => sidelight.metric('sidelight_pins', { cluster: name, layer: 'tcp', ...labels });
  return {
    upstreams,
    send,
    open,
    endpoint: (ip: string) => endpointOf(sidelight, name, `${ip}:${upstreams.port}`),
  };
}

describe.concurrent('D, one of four endpoints always answers 500', () => {
  it(
    'D1 balanced per request: a quarter fails, and every failure is on one address',
    cleaned(async (cleanup) => {
      const { upstreams, client, send, badEndpoint } = await setUp(cleanup, 'd1');
      const seen = await send(80);
      expect(client.log.filter(({ status }) => status === 500)).toHaveLength(20);
      expect(seen.outcomes).toEqual({ ok: 60, failed: 20 });
      expect(seen.attempts).toEqual({
        ...Object.fromEntries(good.map((ip) => [`${ip}:${upstreams.port} ok`, upstreams.requests(ip)])),
        [`${badEndpoint} status_5xx`]: upstreams.requests(bad),
      });
      for (const endpoint of [...good, bad].map((ip) => `${ip}:${upstreams.port}`))
        expect(await endpointOf(sidelight, 'd1', endpoint)).toMatchObject({
          state: 'listed',
          share: 0.25,
          fairShare: 0.25,
        });
    }),
  );

  it(
    'D2 with outlier detection the share of that address falls to 0, and since when is told',
    cleaned(async (cleanup) => {
      const outlier_detection = { consecutive_5xx: 3, base_ejection_time: '60s', max_ejection_percent: 50 };
      const { upstreams, client, send, badEndpoint } = await setUp(cleanup, 'd2', { outlier_detection });
      const before = await send(40);
      const ejectedMs = Date.now();
      const failed = before.attempts[`${badEndpoint} status_5xx`] ?? 0;
      expect(failed).toBeGreaterThanOrEqual(3);
      expect(failed).toBe(client.log.filter(({ ok }) => !ok).length);
      const last = (await endpointOf(sidelight, 'd2', badEndpoint))?.lastUsedMs ?? Number.NaN;
      expect(last).toBeLessThanOrEqual(ejectedMs);
      const after = await send(100);
      expect(after.attempts[`${badEndpoint} status_5xx`]).toBe(failed);
      expect(upstreams.requests(bad)).toBe(failed);
      const others = await Promise.all(good.map((ip) => endpointOf(sidelight, 'd2', `${ip}:${upstreams.port}`)));
      for (const other of others) expect(other?.lastUsedMs).toBeGreaterThan(ejectedMs);
      expect(await endpointOf(sidelight, 'd2', badEndpoint)).toMatchObject({ requests: failed, lastUsedMs: last });
    }),
  );

  it(
    'D3 balanced so that it gets nothing: no failure, but three of the four listed endpoints are without evidence',
    cleaned(async (cleanup) => {
      const { upstreams, client, send } = await setUp(
        cleanup,
        'd3',
        { lb_policy: 'RING_HASH' },
        { hash_policy: [{ header: { header_name: 'user-agent' } }, { connection_properties: { source_ip: true } }] },
      );
      const seen = await send(60);
      const used = [...good, bad].filter((ip) => upstreams.requests(ip) > 0).map((ip) => `${ip}:${upstreams.port}`);
      expect(used).toHaveLength(1);
      const result = client.log.every(({ ok }) => ok) ? 'ok' : 'status_5xx';
      expect(seen.attempts).toEqual({ [`${used[0]} ${result}`]: 60 });
      const listed = await sidelight.metric('sidelight_endpoint_listed', { cluster: 'd3' });
      expect(listed - Object.keys(seen.attempts).length).toBe(3);
      expect(await sidelight.metric('sidelight_endpoint_unused', { cluster: 'd3' })).toBe(3);
    }),
  );

  it(
    'D3 balanced per TCP connection: eight of them, no failure, and the bad address without evidence',
    cleaned(async (cleanup) => {
      const { upstreams, send, open, endpoint } = await setUpTcp(
        cleanup,
        'd3-tcp',
        { lb_policy: 'RING_HASH' },
        { hash_policy: [{ source_ip: {} }] },
      );
      await send();
      const [used = ''] = [...good, bad].filter((ip) => upstreams.requests(ip) > 0);
      // Which one the ring gives is chance; the bad one shall be another.
      const unlucky = used === bad ? good[0] : bad;
      upstreams.handle(() => ({ kind: 'respond', status: 200 }), used);
      upstreams.handle(() => ({ kind: 'respond', status: 500 }), unlucky);
      expect(new Set(await send())).toEqual(new Set([200]));
      await until('the eight', async () => (await open()) === 8);
      expect(await open({ endpoint: `${used}:${upstreams.port}` })).toBe(8);
      expect(await endpoint(used)).toMatchObject({ requests: 8, share: 1, fairShare: 0.25, connections: { open: 8 } });
      expect(await endpoint(unlucky ?? '')).toMatchObject({
        state: 'listed',
        requests: 0,
        connections: { open: 0, idle: 0, unseen: 0 },
      });
      expect(await sidelight.metric('sidelight_endpoint_unused', { cluster: 'd3-tcp' })).toBe(3);
    }),
  );

  it(
    'D3 eight TCP connections in turn: two for each address; that a quarter fails inside is not seen at this layer',
    cleaned(async (cleanup) => {
      const { upstreams, send, open, endpoint } = await setUpTcp(cleanup, 'd3-fair');
      expect((await send()).filter((status) => status === 500)).toHaveLength(20);
      await until('the eight', async () => (await open()) === 8);
      for (const ip of [...good, bad]) {
        expect(await open({ endpoint: `${ip}:${upstreams.port}` })).toBe(2);
        expect(await endpoint(ip)).toMatchObject({ requests: 2, share: 0.25, connections: { open: 2 } });
      }
      expect(await sidelight.metric('sidelight_tcp_connections_total', { cluster: 'd3-fair', result: 'failed' })).toBe(
        0,
      );
      expect(await sidelight.metric('sidelight_endpoint_unused', { cluster: 'd3-fair' })).toBe(0);
    }),
  );
});
