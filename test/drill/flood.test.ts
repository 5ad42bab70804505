import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, it, vi } from 'vitest';
import { type Sample, sumOf } from '../../src/cli/demo/prometheus-text.ts';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { rssMiB } from '../bench/process-usage.ts';
import { Flood, startSilentReceiver } from '../support/flood.ts';
import { answered, logClient } from '../support/log-client.ts';
import { thisProgram } from '../support/this-program.ts';
import { until } from '../support/until.ts';

// As bin/sidelight starts it: a small nursery, or the process grows by garbage that it has no reason yet to collect.
const program = thisProgram('--max-semi-space-size=4');
/** By then every table and queue is full. */
const warmUp = 24;
const rounds = 50;
/** Rounds at either end whose median is compared: a garbage collection comes when it likes. */
const window = 5;
/** A round brings some 10 MiB that was never there before: a seventh of each kept would be more than this. */
const mostGrowthMiB = 30;
const steadyPerRound = 5;

const cleanup = new Cleanup();
afterEach(async () => {
  vi.unstubAllEnvs();
  await cleanup.run();
});

it('a flood of inputs that never repeat: memory and tables stay as they are, and a stream beside it is whole', async () => {
  // Exports that never end are as many as they will ever be when the first is given up.
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '2000');
  const limits = { clusters: 50, endpoints: 100, reporters: 40, logStreams: 60, processStreams: 55 };
  const sidelight = cleanup.use(
    await startSidelight(program, {
      join: { lingerMs: 1001, maxWaitMs: 5000, maxExchanges: 1000 },
      pins: { maxConnections: 300 },
      limits: { ...limits, recentExchanges: 70 },
      traces: { rootSampleRatio: 1, keepPerSecond: 1000 },
      discovery: { dns: { servers: [await silentNameServer()], maxHosts: 20, timeoutMs: 200 } },
      otlp: { endpoint: cleanup.use(await startSilentReceiver()).url, intervalMs: 500 },
    }),
  );
  const steady = cleanup.use(logClient(sidelight.grpcPort, 'steady')).stream();
  const flood = cleanup.use(new Flood(sidelight.grpcPort, sidelight.httpUrl));

  const memory: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (let request = 0; request < steadyPerRound; request += 1)
      steady.entries(answered({ key: `steady-${round}-${request}`, cluster: 'steady', startMs: Date.now() }));
    await flood.round();
    await sidelight.get('/healthz');
    memory.push(rssMiB(sidelight.pid));
  }
  flood.close();

  const whole = { sidelight_cluster: 'steady', sidelight_outcome: 'ok' };
  const counted = (samples: Sample[]) => sumOf(samples, 'sidelight_requests_total', whole);
  const sent = rounds * steadyPerRound;
  await until('every exchange of the steady stream', async () => counted(await sidelight.samples()) >= sent);
  const open = (samples: Sample[]) => sumOf(samples, 'sidelight_self_streams', {});
  await until('all other streams to be gone', async () => open(await sidelight.samples()) === 1);
  const samples = await sidelight.samples();
  expect(counted(samples)).toBe(sent);
  // Discovery has a bound of its own.
  const counters = samples.filter(({ name }) => /^sidelight_(requests|attempts)_total$/.test(name));
  expect(distinct(counters, 'sidelight_reporter_workload')).toBeLessThanOrEqual(limits.reporters + other);
  expect(distinct(counters, 'sidelight_cluster')).toBeLessThanOrEqual(limits.clusters + other);
  expect(distinct(counters, 'sidelight_endpoint')).toBeLessThanOrEqual(limits.endpoints + other);
  for (const label of ['reporter', 'cluster', 'endpoint'])
    expect(sumOf(samples, 'sidelight_self_label_overflow_total', { sidelight_label: label })).toBeGreaterThan(0);
  for (const limit of ['connections', 'too_many_streams'])
    expect(sumOf(samples, 'sidelight_self_refused_total', { sidelight_limit: limit })).toBeGreaterThan(0);
  expect(sumOf(samples, 'sidelight_self_join_events_total', { sidelight_event: 'evicted' })).toBeGreaterThan(0);
  const [early, late] = [memory.slice(warmUp, warmUp + window), memory.slice(-window)];
  expect(median(late) - median(early), `MiB by round: ${memory.map(Math.round).join(' ')}`).toBeLessThan(mostGrowthMiB);
});

/** The label value for what found no place. */
const other = 1;

function distinct(samples: readonly Sample[], label: string): number {
  return new Set(samples.flatMap(({ labels }) => labels[label] ?? [])).size;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The address of a name server that hears every question and answers none. */
async function silentNameServer(): Promise<string> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  cleanup.defer(() => socket.close());
  return `127.0.0.1:${socket.address().port}`;
}
