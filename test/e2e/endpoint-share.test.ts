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
import { cleaned, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';

/* Which endpoint gets which share of the attempts: four addresses, the last of which always answers 500. */
const everything = new Cleanup();
const good = ['127.0.0.31', '127.0.0.32', '127.0.0.33'];
const bad = '127.0.0.34';
let sidelight: TestSidelight;

beforeAll(async () => {
  const file = path.join(everything.use(tempDir()).path, 'endpoints.yaml');
  writeFileSync(file, `clusters: { d3: [${[...good, bad].join(', ')}] }\n`);
  sidelight = everything.use(await startTestSidelight({ discovery: { file } }));
});
afterAll(() => everything.run());

async function setUp(cleanup: Cleanup, name: string, extra: Json = {}, route: Json = {}) {
  const upstreams = cleanup.use(await Upstreams.start({ ips: [...good, bad] }));
  upstreams.handle(() => ({ kind: 'respond', status: 500 }), bad);
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
    }),
  );

  it(
    'D2 with outlier detection the share of that address falls to 0',
    cleaned(async (cleanup) => {
      const outlier_detection = { consecutive_5xx: 3, base_ejection_time: '60s', max_ejection_percent: 50 };
      const { upstreams, client, send, badEndpoint } = await setUp(cleanup, 'd2', { outlier_detection });
      const before = await send(40);
      const failed = before.attempts[`${badEndpoint} status_5xx`] ?? 0;
      expect(failed).toBeGreaterThanOrEqual(3);
      expect(failed).toBe(client.log.filter(({ ok }) => !ok).length);
      const after = await send(100);
      expect(after.attempts[`${badEndpoint} status_5xx`]).toBe(failed);
      expect(upstreams.requests(bad)).toBe(failed);
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
    }),
  );
});
