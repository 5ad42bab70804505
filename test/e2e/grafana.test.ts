import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { manyRetries } from '../../src/lab/istio-defaults.ts';
import { drive } from '../../src/lab/load.ts';
import { type Prometheus, startPrometheus } from '../../src/lab/prometheus.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { failover, retry, retryAtNextPriority } from '../fixtures/cases/parts.ts';
import { dashboardQueries, withVariables } from '../support/dashboard.ts';
import { scrapeText, testEmit } from '../support/emit.ts';
import { needPart, part } from '../support/part.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { startLoggingEnvoy } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/* Every query of the dashboard, on a real Prometheus that scrapes a Sidelight behind a real Envoy with every fault at once. */
const cleanup = new Cleanup();
let prometheus: Prometheus | undefined;

const routeTo = (cluster: string, more: Json = {}): Json => ({
  match: { prefix: `/${cluster}` },
  route: { cluster, timeout: '30s', ...more },
});

/** Retried at a dead address, given up by some callers; and over a connection whose endpoint left. */
async function startFaults(): Promise<string> {
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11', '127.0.0.12'] }));
  const [living = '', dead = ''] = upstreams.addresses;
  await upstreams.down('127.0.0.12');
  upstreams.handle(({ path: asked }) =>
    asked.endsWith('/hang') ? { kind: 'hang' } : { kind: 'respond', status: 200 },
  );
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  // JSON is YAML.
  const list = (endpoint: string) => writeFileSync(file, JSON.stringify({ clusters: { steady: [endpoint] } }));
  list(living);
  const sidelight = cleanup.use(
    await startTestSidelight({ discovery: { file }, clusters: [{ match: 'steady', graceMs: 0 }] }),
  );
  const envoy = await startLoggingEnvoy(cleanup, 'shop', {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [
      failover(dead, living, staticCluster([], { name: 'app', extra: manyRetries })),
      staticCluster([living], { name: 'steady' }),
    ],
    routes: [routeTo('app', retry('connect-failure', retryAtNextPriority)), routeTo('steady')],
  });
  const ending = new AbortController();
  const send = (asked: string, abortAfterMs?: number) => {
    const client = http1Client(envoy.port('http'));
    const options = abortAfterMs === undefined ? {} : { abortAfterMs };
    const pause = { concurrency: 1, pauseMs: 50, signal: ending.signal };
    const done = drive(() => client.request(asked, options), pause);
    cleanup.defer(async () => {
      ending.abort();
      await done;
      client.close();
    });
  };
  send('/app');
  send('/app/hang', 300);
  send('/steady');
  await until(
    'judged traffic',
    async () => (await sidelight.metric('sidelight_requests_total', { cluster: 'steady' })) > 3,
  );
  // A connection opened closer to the leaving than the clocks' uncertainty could as well have been opened after it.
  await sleep(2500);
  list(dead);
  await until('a stale pin', async () => (await sidelight.metric('sidelight_pins', { pin: 'stale' })) > 0);
  return new URL(sidelight.httpUrl).host;
}

/** What a Sidelight exports that has met each trouble of its own, and knows how many proxies should report. */
async function startTroubled(): Promise<string> {
  const emit = testEmit({ sources: { expected: () => 3 } });
  emit.self.refused('connections');
  emit.self.decodeError('access_log');
  emit.self.failOpen('internal');
  emit.self.incomplete('end_not_seen');
  emit.self.spansDropped('queue_full', 1);
  emit.self.exported('traces', 'failed');
  emit.self.labelOverflow('endpoint');
  const server = createServer((_, response) => response.end(scrapeText(emit)));
  cleanup.defer(() => server.closeAllConnections());
  cleanup.defer(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  const bin = part('PROMETHEUS_BIN');
  if (bin === undefined) return;
  const targets = [await startFaults(), await startTroubled()];
  prometheus = cleanup.use(await startPrometheus({ bin, scrapes: [{ job: 'sidelight', targets }], intervalMs: 500 }));
}, 120_000);
afterAll(() => cleanup.run());

/** What is to be seen of each fault, in its panel: a value above this. */
const seen: Record<string, number> = {
  Masked: 0.5,
  'Masked, by cause': 0,
  Amplification: 1.5,
  'Callers who left first': 0,
  'Stale pins': 0,
  'The oldest stale pin': 2,
  'Bytes to endpoints that left': 0,
  'Listed endpoints with no evidence': 0,
};

it.for(dashboardQueries())('$panel, $legend: returns something', async ({ panel, expr }, context) => {
  needPart(context, 'PROMETHEUS_BIN');
  const query = withVariables(expr, 'envoy', '10s');
  const above = seen[panel] ?? -1;
  let values: number[] = [];
  // A rate needs two scrapes, and a quantile of no observation is no number.
  await until(
    `more than ${above} of ${query}`,
    async () => {
      values = ((await prometheus?.query(query)) ?? []).map(({ value }) => value);
      return values.some((value) => value > above);
    },
    20_000,
  ).catch(() => undefined);
  expect([query, values.some((value) => value > above), values]).toEqual([query, true, values]);
});

it('the faults that are looked for have panels', () => {
  const panels = dashboardQueries().map(({ panel }) => panel);
  expect(Object.keys(seen).filter((panel) => !panels.includes(panel))).toEqual([]);
});
