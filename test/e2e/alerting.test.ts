import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import type { FiringAlert } from '../../src/lab/alertmanager.ts';
import { startBackend } from '../../src/lab/backend.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { failover, retry, retryAtNextPriority, toApp } from '../fixtures/cases/parts.ts';
import { startAlerting } from '../support/alerting.ts';
import { startJaeger, tagOf } from '../support/jaeger.ts';
import { newIp, oldIp, setUpOwnMove } from '../support/moving-name.ts';
import { needPart } from '../support/part.ts';
import { keepSending, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/*
 * From a fault behind a real Envoy to an alert in a real Alertmanager, with a runbook and a search that finds the trace in
 * a real Jaeger; and to its end. The rules are those that are shipped, with every time a thirtieth.
 */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const withinMs = 400_000;
const jaegerPage = 'https://jaeger.example.com';

/** The search that a link asks for. */
function searchOf({ annotations }: FiringAlert) {
  const url = new URL(annotations['traces_url'] ?? '');
  const query = (name: string) => url.searchParams.get(name) ?? '';
  expect([url.origin, url.pathname]).toEqual([jaegerPage, '/search']);
  const tags = JSON.parse(query('tags')) as Record<string, string>;
  return { service: query('service'), operation: query('operation'), tags };
}

function expectRunbook({ annotations }: FiringAlert): void {
  const runbook = annotations['runbook_url'] ?? '';
  expect(runbook).not.toBe('');
  expect(existsSync(path.join(import.meta.dirname, '../..', runbook))).toBe(true);
}

/** Traffic through an Envoy whose cluster has a dead address, which is always tried first: every request is masked. */
async function startMasking(sidelight: Pick<TestSidelight, 'grpcPort'>) {
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp, newIp] }));
  const [living, dead] = upstreams.addresses as [string, string];
  await upstreams.down(newIp);
  const envoy = await startReporter(cleanup, 'storefront', {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [failover(dead, living, staticCluster([], { name: 'app' }))],
    routes: [toApp(retry('connect-failure', retryAtNextPriority))],
  });
  const { failures } = keepSending(cleanup, envoy);
  return { upstreams, failures };
}

const ofStorefront = {
  sidelight_cluster: 'app',
  sidelight_reporter_kind: 'envoy',
  sidelight_reporter_workload: 'storefront',
};

it('masked failures page, lead to their trace, and end with the fault', { timeout: withinMs }, async (context) => {
  const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
  const beganMs = Date.now();
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: jaeger.grpc } }));
  const alerting = await startAlerting(context, cleanup, sidelight.httpUrl, jaegerPage);
  const { upstreams, failures } = await startMasking(sidelight);

  const alert = await alerting.fires('SidelightMaskedFailuresFast');
  expect(failures()).toBe(0);
  expect(alert.labels).toEqual({
    alertname: 'SidelightMaskedFailuresFast',
    severity: 'page',
    ...ofStorefront,
  });
  expect(alert.annotations).toMatchObject({
    summary: 'Retries hide failures of app (as envoy of storefront sees it)',
    description: expect.stringMatching(/^100% of the requests of the last hour succeeded only because/),
  });
  expectRunbook(alert);
  const { service, tags } = searchOf(alert);
  const [trace] = await jaeger.find(service, tags, beganMs);
  const exchange = trace?.spans.find((span) => tagOf(span, 'sidelight.outcome') === 'masked');
  expect(tagOf(exchange, 'sidelight.cluster')).toBe('app');
  await alerting.fires('SidelightFirstTryFarBelowEffective');
  const amplified = searchOf(await alerting.fires('SidelightAmplification'));
  const [retried] = await jaeger.find(amplified.service, amplified.tags, beganMs);
  expect(retried?.spans.some((span) => tagOf(span, 'sidelight.attempts') === 2)).toBe(true);

  await upstreams.up(newIp);
  await alerting.ends('SidelightMaskedFailuresFast');
  await alerting.ends('SidelightFirstTryFarBelowEffective');
  expect(failures()).toBe(0);
  expect(await alerting.firing()).not.toContain('SidelightBlind');
});

it('a stale pin is told with who holds it, leads to its trace, and ends with it', {
  timeout: withinMs,
}, async (context) => {
  const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
  const beganMs = Date.now();
  const dns = cleanup.use(await DnsServer.start());
  const move = await setUpOwnMove(cleanup, dns, {
    name: 'ledger',
    kind: 'LOGICAL_DNS',
    rule: { graceMs: 0 },
    otlp: { endpoint: jaeger.grpc },
  });
  const alerting = await startAlerting(context, cleanup, move.sidelight.httpUrl, jaegerPage);
  move.upstreams.handle(() => ({ kind: 'respond', status: 200, body: 'x'.repeat(2000) }));
  // So few that Jaeger, which keeps the latest thousand traces here, still has that of the pin when it is asked.
  keepSending(cleanup, move.envoy, { concurrency: 1, pauseMs: 100 });
  await until('requests', async () => (await move.requests('current')) > 0);
  move.answer(newIp);

  const endpoint = `${oldIp}:${move.upstreams.port}`;
  const alert = await alerting.fires('SidelightStalePinHttp');
  expect(alert.labels).toEqual({
    alertname: 'SidelightStalePinHttp',
    severity: 'ticket',
    sidelight_cluster: 'ledger',
    sidelight_endpoint: endpoint,
    sidelight_layer: 'http',
    sidelight_reporter_kind: 'envoy',
    sidelight_reporter_workload: 'ledger',
  });
  expect(alert.annotations['description']).toMatch(/^envoy of ledger keeps a pool to it; the oldest connection is \d/);
  expectRunbook(alert);
  const { service, operation, tags } = searchOf(alert);
  const [trace] = await jaeger.find(service, tags, beganMs);
  expect(trace?.spans[0]?.operationName).toBe(operation);
  await alerting.fires('SidelightStalePinBytes');

  move.upstreams.cycle(oldIp);
  await alerting.ends('SidelightStalePinHttp');
  await alerting.ends('SidelightStalePinBytes');
});

it('a Sidelight that is killed is told, and its coming back', { timeout: withinMs }, async (context) => {
  const entry = path.join(import.meta.dirname, '../../src/main.ts');
  const program = { node: process.execPath, flags: [], entry };
  const sidelight = cleanup.use(await startSidelight(program, {}));
  const listen = { grpc: `127.0.0.1:${sidelight.grpcPort}`, http: new URL(sidelight.httpUrl).host };
  const alerting = await startAlerting(context, cleanup, sidelight.httpUrl);
  const answers = async () => (await alerting.prometheus.query('sidelight_self_series')).length > 0;
  await until('a scrape', answers);

  process.kill(sidelight.pid, 'SIGKILL');
  const blind = await alerting.fires('SidelightBlind');
  expect(blind.labels).toEqual({ alertname: 'SidelightBlind', severity: 'page' });
  expect(blind.annotations['description']).toMatch(/^No replica answers a scrape or sends metrics\./);
  expectRunbook(blind);
  const down = await alerting.fires('SidelightReplicaDown');
  expect(down.labels).toMatchObject({ job: 'sidelight', instance: listen.http, severity: 'ticket' });

  cleanup.use(await startSidelight(program, { listen }));
  await alerting.ends('SidelightBlind');
  await alerting.ends('SidelightReplicaDown');
});

it('over OTLP and a Collector the rules see what they see on a scrape', { timeout: withinMs }, async (context) => {
  const collector = await startCollector(needPart(context, 'JAEGER_BIN'));
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: collector.otlp, intervalMs: 500 } }));
  const alerting = await startAlerting(context, cleanup, collector.url);
  await startMasking(sidelight);

  const { labels } = await alerting.fires('SidelightFirstTryFarBelowEffective');
  expect(labels).toEqual({
    alertname: 'SidelightFirstTryFarBelowEffective',
    severity: 'page',
    ...ofStorefront,
  });
  expect(await alerting.firing()).not.toContain('SidelightBlind');
  await sidelight.close();
  await alerting.fires('SidelightBlind');
});

/** The Collector that is in Jaeger: OTLP in, a page for Prometheus out. */
async function startCollector(bin: string) {
  const otlp = `127.0.0.1:${await freePort()}`;
  const config = {
    receivers: { otlp: { protocols: { grpc: { endpoint: otlp } } } },
    // What a replica that is gone said last would be told for minutes.
    exporters: { prometheus: { metric_expiration: '2s' } },
    service: {
      pipelines: { metrics: { receivers: ['otlp'], exporters: ['prometheus'] } },
      telemetry: { metrics: { level: 'none' } },
    },
  };
  const collector = cleanup.use(
    await startBackend({
      name: 'the Collector',
      bin,
      // JSON is YAML.
      files: { 'collector.yaml': JSON.stringify(config) },
      args: (address) => ['--config=collector.yaml', `--set=exporters.prometheus.endpoint=${address}`],
      readyPath: '/metrics',
    }),
  );
  return { ...collector, otlp: `http://${otlp}` };
}
