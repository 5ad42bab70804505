import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import { sumOf } from '../../src/cli/demo/prometheus-text.ts';
import { type SidelightProcess, startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { labConfig, type ShippedConfig } from '../../src/lab/envoy-config.ts';
import { startEnvoy } from '../../src/lab/envoy-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { drive, type LoadClient } from '../../src/lab/load.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { thisProgram } from '../support/this-program.ts';
import { until } from '../support/until.ts';

const program = thisProgram();
let cleanup = new Cleanup();
afterEach(async () => {
  await cleanup.run();
  cleanup = new Cleanup();
});

describe.each<ShippedConfig>(['full', 'tag', 'observe'])('profile %s', (profile) => {
  it('killed, then frozen, in mid-traffic: no request fails, and tags and records resume', async () => {
    const grpcPort = await freePort();
    const start = async () =>
      cleanup.use(
        await startSidelight(program, {
          listen: { grpc: `127.0.0.1:${grpcPort}`, http: '127.0.0.1:0' },
          tagging: { responseHeaders: 'always' },
          join: { lingerMs: 1001 },
        }),
      );
    let sidelight = await start();
    const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11'] }));
    const clusters = [staticCluster(upstreams.addresses, { name: 'app' })];
    const config = labConfig({ base: profile, sidelightPort: grpcPort, clusters });
    const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
    const client = http1Client(envoy.port('http'), 4);
    const ending = new AbortController();
    const traffic = drive(() => client.request('/'), { concurrency: 4, pauseMs: 5, signal: ending.signal });
    cleanup.defer(async () => {
      ending.abort();
      await traffic;
      client.close();
    });
    const works = () => working(profile, sidelight, client);
    await until('tags and records', works);

    process.kill(sidelight.pid, 'SIGKILL');
    await sleep(1500);
    const whileDead = client.log.length;
    sidelight = await start();
    await until('tags and records after the kill', works);

    process.kill(sidelight.pid, 'SIGSTOP');
    await sleep(4000);
    const whileFrozen = client.log.length;
    process.kill(sidelight.pid, 'SIGCONT');
    await until('tags and records after the freeze', works);

    expect(whileDead).toBeGreaterThan(0);
    expect(whileFrozen).toBeGreaterThan(whileDead);
    expect(client.log.filter((result) => !result.ok)).toEqual([]);
  });
});

/** The latest response is tagged (where the profile tags), and new requests are counted. */
async function working(profile: ShippedConfig, sidelight: SidelightProcess, client: LoadClient): Promise<boolean> {
  const tagged = client.log.at(-1)?.headers['x-sidelight-profile'] === profile;
  if (profile !== 'observe' && !tagged) return false;
  const before = sumOf(await sidelight.samples(), 'sidelight_requests_total', {});
  await sleep(300);
  return sumOf(await sidelight.samples(), 'sidelight_requests_total', {}) > before;
}
