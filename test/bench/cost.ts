import { fileURLToPath } from 'node:url';
import { findEnvoy } from '../../setup/envoy.mjs';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import { table } from '../../src/cli/demo/table.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { type Bootstrap, labConfig, type ShippedConfig } from '../../src/lab/envoy-config.ts';
import { startEnvoy } from '../../src/lab/envoy-process.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { drive } from '../../src/lab/load.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { cpuMs, rssMiB } from './process-usage.ts';

/*
 * What each profile costs, beside the same Envoy without Sidelight, in one run: rounds of all of them in turn, and the
 * median over the rounds. Only the ratios mean anything on another machine.
 */
const rounds = 3;
const requests = 4000;
const concurrency = 8;
const modes = ['plain', 'observe', 'tag', 'full'] as const;
type Mode = (typeof modes)[number];

interface Cost {
  envoyUs: number;
  sidelightUs: number;
  p50Ms: number;
  rssMiB: number;
}

const costs: Record<Mode, Cost[]> = { plain: [], observe: [], tag: [], full: [] };
for (let round = 0; round < rounds; round += 1) for (const mode of modes) costs[mode].push(await measure(mode));

const base = medians(costs.plain);
const rows = modes.map((mode) => {
  const cost = medians(costs[mode]);
  return [
    mode,
    ...[cost.envoyUs, cost.sidelightUs].map((us) => us.toFixed(0)),
    ((cost.envoyUs + cost.sidelightUs) / base.envoyUs).toFixed(2),
    cost.p50Ms.toFixed(2),
    (cost.p50Ms / base.p50Ms).toFixed(2),
    cost.rssMiB.toFixed(0),
  ];
});
const header = ['profile', 'Envoy µs/req', 'Sidelight µs/req', 'CPU ÷ plain', 'p50 ms', 'p50 ÷ plain', 'Sidelight MiB'];
for (const line of table(header, rows)) console.log(line);

async function measure(mode: Mode): Promise<Cost> {
  const cleanup = new Cleanup();
  try {
    const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
    const sidelight = cleanup.use(
      await startSidelight({ node: process.execPath, flags: ['--max-semi-space-size=4'], entry: main }, {}),
    );
    const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11'] }));
    const clusters = [staticCluster(upstreams.addresses, { name: 'app' })];
    const shipped: ShippedConfig = mode === 'plain' ? 'full' : mode;
    const config = labConfig({ base: shipped, sidelightPort: sidelight.grpcPort, clusters, logFlushMs: 1000 });
    const envoy = cleanup.use(
      await startEnvoy({ bin: findEnvoy().path, config: mode === 'plain' ? bare(config) : config }),
    );
    if (mode !== 'plain') await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (value) => value === 1);
    const client = http1Client(envoy.port('http'), concurrency);
    cleanup.defer(() => client.close());
    const send = () => client.request('/');
    await drive(send, { concurrency, total: requests / 4 });
    const warm = client.log.length;
    const before = { envoy: cpuMs(envoy.pid), sidelight: cpuMs(sidelight.pid) };
    await drive(send, { concurrency, total: requests });
    // The log comes a second later; its cost belongs to these requests.
    await new Promise((resolve) => setTimeout(resolve, 4000));
    const latencies = client.log.slice(warm).map((result) => result.durationMs);
    return {
      envoyUs: ((cpuMs(envoy.pid) - before.envoy) * 1000) / requests,
      sidelightUs: ((cpuMs(sidelight.pid) - before.sidelight) * 1000) / requests,
      p50Ms: median(latencies),
      rssMiB: rssMiB(sidelight.pid),
    };
  } finally {
    await cleanup.run();
  }
}

/** The same Envoy without anything of ours. */
function bare(config: Bootstrap): Bootstrap {
  for (const listener of config.static_resources.listeners) {
    for (const { typed_config: filter } of listener.filter_chains.flatMap((chain) => chain.filters)) {
      delete filter.access_log;
      delete filter['early_header_mutation_extensions'];
      const router = filter.http_filters?.at(-1);
      if (router === undefined) continue;
      delete router.typed_config.upstream_log;
      filter.http_filters = [router];
    }
  }
  return config;
}

function medians(all: readonly Cost[]): Cost {
  return {
    envoyUs: median(all.map((cost) => cost.envoyUs)),
    sidelightUs: median(all.map((cost) => cost.sidelightUs)),
    p50Ms: median(all.map((cost) => cost.p50Ms)),
    rssMiB: median(all.map((cost) => cost.rssMiB)),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
