import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findEnvoy } from '../../setup/envoy.mjs';
import { sumOf } from '../../src/cli/demo/prometheus-text.ts';
import { type SidelightProcess, startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import { table } from '../../src/cli/demo/table.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { labConfig } from '../../src/lab/envoy-config.ts';
import { startEnvoy } from '../../src/lab/envoy-process.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { drive } from '../../src/lab/load.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { cpuMs, rssMiB } from './process-usage.ts';

/*
 * What an open page costs the requests: profile `full`, rounds with and without 50 viewers of every part in turn, and the
 * median over the rounds. Only the ratios mean anything on another machine.
 */
const rounds = 5;
const requests = 3000;
const concurrency = 4;
const viewers = 50;

interface Cost {
  tagMs: number;
  p50Ms: number;
  p99Ms: number;
  sidelightUs: number;
  rssMiB: number;
}

const cleanup = new Cleanup();
const costs: { without: Cost[]; with: Cost[] } = { without: [], with: [] };
try {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const program = { node: process.execPath, flags: ['--max-semi-space-size=4'], entry: main };
  const sidelight = cleanup.use(await startSidelight(program, {}));
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11'] }));
  const clusters = [staticCluster(upstreams.addresses, { name: 'app' })];
  const config = labConfig({ base: 'full', sidelightPort: sidelight.grpcPort, clusters, logFlushMs: 1000 });
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (value) => value === 1);
  await measure(sidelight, envoy.port('http'));
  for (let round = 0; round < rounds; round += 1) {
    costs.without.push(await measure(sidelight, envoy.port('http')));
    const close = watch(sidelight.httpUrl);
    costs.with.push(await measure(sidelight, envoy.port('http')));
    close();
    await sleep(500);
  }
} finally {
  await cleanup.run();
}

const names = ['tagMs', 'p50Ms', 'p99Ms', 'sidelightUs', 'rssMiB'] as const;
const rows = names.map((name) => {
  const [without, withAll] = [median(costs.without, name), median(costs.with, name)];
  return [name, without.toFixed(3), withAll.toFixed(3), (withAll / without).toFixed(2)];
});
for (const line of table(['median of', 'no viewer', `${viewers} viewers`, 'ratio'], rows)) console.log(line);

async function measure(sidelight: SidelightProcess, port: number): Promise<Cost> {
  const client = http1Client(port, concurrency);
  const before = { cpu: cpuMs(sidelight.pid), tag: await tagTime(sidelight) };
  await drive(() => client.request('/'), { concurrency, total: requests });
  // The log comes a second later; its cost belongs to these requests.
  await sleep(3000);
  client.close();
  const after = await tagTime(sidelight);
  const latencies = client.log.map(({ durationMs }) => durationMs).toSorted((a, b) => a - b);
  return {
    tagMs: ((after.sum - before.tag.sum) * 1000) / (after.count - before.tag.count),
    p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    sidelightUs: ((cpuMs(sidelight.pid) - before.cpu) * 1000) / requests,
    rssMiB: rssMiB(sidelight.pid),
  };
}

async function tagTime(sidelight: SidelightProcess): Promise<{ sum: number; count: number }> {
  const samples = await sidelight.samples();
  const of = (part: string) => sumOf(samples, `sidelight_self_tag_duration_seconds_${part}`, {});
  return { sum: of('sum'), count: of('count') };
}

/** Opens as many streams of every part, and reads what comes; the function that it returns closes them. */
function watch(httpUrl: string): () => void {
  const all = Array.from({ length: viewers }, () =>
    get(`${httpUrl}/api/v1/events`, { agent: false }, (response) => response.resume()),
  );
  for (const one of all) one.on('error', () => undefined);
  return () => {
    for (const one of all) one.destroy();
  };
}

function median(all: readonly Cost[], name: keyof Cost): number {
  const values = all.map((cost) => cost[name]).toSorted((a, b) => a - b);
  return values[Math.floor(values.length / 2)] ?? Number.NaN;
}
