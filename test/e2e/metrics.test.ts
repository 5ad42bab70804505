import { spawnSync } from 'node:child_process';
import { afterEach, expect, it } from 'vitest';
import { behaviourFromPath } from '../../src/lab/behaviour.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { type ClientResult, drive, type RequestOptions } from '../../src/lab/load.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { counts } from '../support/counts.ts';
import { answered, logClient } from '../support/log-client.ts';
import { startGrpcReceiver } from '../support/otlp-sink.ts';
import { part } from '../support/part.ts';
import { parsePrometheusText, samplesOf, total } from '../support/prometheus-text.ts';
import { keepSending, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* What /metrics says equals what the client, the upstreams and Envoy counted. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

/** A kind of request, what it must look like to the client, and what Sidelight must call it. */
interface Kind {
  path: string;
  options?: RequestOptions;
  client: (result: ClientResult) => boolean;
  outcome: string;
  attempts: number;
}

const status = (code: number) => (result: ClientResult) => result.status === code && result.error === undefined;
const kinds: Kind[] = [
  { path: '/status/200', client: status(200), outcome: 'ok', attempts: 1 },
  { path: '/status/404', client: status(404), outcome: 'ok', attempts: 1 },
  { path: '/flaky', client: status(200), outcome: 'masked', attempts: 2 },
  { path: '/status/500', client: status(500), outcome: 'failed', attempts: 1 },
  { path: '/status/503', client: status(503), outcome: 'exhausted', attempts: 3 },
  { path: '/die-in-body', client: ({ error }) => error !== undefined, outcome: 'failed', attempts: 1 },
  {
    path: '/slow/3000',
    options: { abortAfterMs: 30 },
    client: ({ error }) => error === 'aborted',
    outcome: 'aborted',
    attempts: 1,
  },
  { path: '/direct', client: status(403), outcome: 'local client_error', attempts: 0 },
];
const rounds = 40;

it('a mixed load: every outcome as the client saw it, every attempt as the upstreams counted it, and nothing else', async () => {
  const sidelight = cleanup.use(await startTestSidelight());
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11', '127.0.0.12'] }));
  upstreams.handle((request) => {
    const first = request.headers['x-envoy-attempt-count'] === '1';
    return request.path === '/flaky' ? { kind: 'respond', status: first ? 503 : 200 } : behaviourFromPath(request);
  });
  const retry = { retry_on: 'retriable-status-codes', retriable_status_codes: [503], num_retries: 2 };
  const envoy = await startReporter(cleanup, 'mixed', {
    base: 'full',
    concurrency: 2,
    sidelightPort: sidelight.grpcPort,
    clusters: [
      staticCluster(upstreams.addresses, {
        name: 'app',
        extra: { circuit_breakers: { thresholds: [{ max_retries: 100 }] } },
      }),
    ],
    routes: [{ match: { path: '/direct' }, direct_response: { status: 403 } }, routeTo('app', retry)],
  });
  const client = cleanup.use(http1Client(envoy.port('http'), 8));
  const queue = kinds.flatMap((kind) => Array.from({ length: rounds }, () => kind));
  await drive(
    async () => {
      const kind = queue.pop();
      if (kind === undefined) return;
      const result = await client.request(kind.path, kind.options);
      if (!kind.client(result)) throw new Error(`${kind.path}: ${JSON.stringify(result)}`);
    },
    { concurrency: 8, total: queue.length },
  );

  const sent = kinds.length * rounds;
  const place = { reporter_workload: 'mixed' };
  const seen = await counts(sidelight, place, sent);
  const expected: Record<string, number> = {};
  for (const { outcome } of kinds) expected[outcome] = (expected[outcome] ?? 0) + rounds;
  expect(seen.outcomes).toEqual(expected);
  const attempts = kinds.reduce((sum, kind) => sum + kind.attempts * rounds, 0);
  expect(await seen.metric('sidelight_attempts_total')).toBe(attempts);
  expect(upstreams.requests()).toBe(attempts);
  for (const endpoint of upstreams.addresses) {
    const own = Object.entries(seen.attempts).filter(([name]) => name.startsWith(`${endpoint} `));
    expect(own.reduce((sum, [, count]) => sum + count, 0)).toBe(upstreams.requests(endpoint.split(':')[0]));
  }
  expect(await seen.metric('sidelight_attempted_requests_total')).toBe(sent - rounds);
  expect(await seen.metric('sidelight_request_duration_seconds_count')).toBe(sent);
  expect(await seen.metric('sidelight_pinned_requests_total')).toBe(sent - rounds);
  expect(await seen.metric('sidelight_masked_latency_seconds_count')).toBe(rounds);
  expect(await seen.metric('sidelight_attempts_total', { result: 'ok' })).toBe(3 * rounds);
  for (const quiet of [
    'decode_errors',
    'refused',
    'exchanges_incomplete',
    'attempt_count_mismatches',
    'label_overflow',
    'fail_open',
  ])
    expect([quiet, await sidelight.metric(`sidelight_self_${quiet}_total`)]).toEqual([quiet, 0]);

  const promtool = part('PROMTOOL');
  if (promtool === undefined) return;
  const checked = spawnSync(promtool, ['check', 'metrics'], {
    input: await sidelight.get('/metrics'),
    encoding: 'utf8',
  });
  expect([checked.stdout, checked.stderr, checked.status]).toEqual(['', '', 0]);
});

it('3,000 clusters fit: each has its series, on the scrape and over OTLP, and none is "other"', async () => {
  const otlp = cleanup.use(await startGrpcReceiver());
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: otlp.url, intervalMs: 60_000 } }));
  const envoy = cleanup.use(logClient(sidelight.grpcPort, 'wide'));
  const stream = envoy.stream();
  const names = Array.from({ length: 3000 }, (_, index) => `outbound|80||service-${index}.shop.svc.cluster.local`);
  for (let from = 0; from < names.length; from += 100)
    stream.entries(
      names
        .slice(from, from + 100)
        .flatMap((cluster, index) => answered({ key: `${from + index}`, cluster, startMs: Date.now() })),
    );
  stream.entries(answered({ key: 'last', cluster: 'last', status: 500, startMs: Date.now() }));
  // Failures are listed: /metrics is too large by now to be asked again and again.
  await until('the last request', async () => (await sidelight.get('/api/v1/exchanges')).includes('"last"'));
  const text = await sidelight.get('/metrics');
  const families = parsePrometheusText(text);
  const clustersOf = (name: string, labels: Record<string, string>) =>
    new Set(
      samplesOf(families, name, labels)
        .filter(({ value }) => value === 1)
        .map((sample) => sample.labels['sidelight_cluster']),
    );
  expect(clustersOf('sidelight_requests_total', { sidelight_outcome: 'ok' })).toEqual(new Set(names));
  expect(clustersOf('sidelight_attempts_total', { sidelight_result: 'ok' })).toEqual(new Set(names));
  expect(text).not.toMatch(/otel_metric_overflow|="other"/);
  expect(total(families, 'sidelight_self_label_overflow_total')).toBe(0);

  await sidelight.close();
  const pushed = otlp.received.metrics.flatMap(({ metrics }) => metrics);
  const oks = pushed
    .filter(({ name }) => name === 'sidelight.requests')
    .flatMap(({ points }) => points)
    .filter(({ attributes, value }) => attributes['sidelight.outcome'] === 'ok' && value === 1);
  expect(new Set(oks.map(({ attributes }) => attributes['sidelight.cluster']))).toEqual(new Set(names));
  expect(
    pushed.flatMap((metric) => metric.points).filter(({ attributes }) => 'otel.metric.overflow' in attributes),
  ).toEqual([]);
});

it('garbage on one log stream and one ext_proc stream ends these alone, counted: of the others nothing is lost', async () => {
  const sidelight = cleanup.use(await startTestSidelight());
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11'] }));
  const envoy = await startReporter(cleanup, 'beside', {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [staticCluster(upstreams.addresses, { name: 'app' })],
    routes: [routeTo('app')],
  });
  const { client, failures, stop } = keepSending(cleanup, envoy, { concurrency: 4, pauseMs: 2 });
  const other = cleanup.use(logClient(sidelight.grpcPort, 'other'));
  const good = other.stream();
  good.entries(answered({ key: '1', cluster: 'theirs', startMs: Date.now() }));
  const garbage = Buffer.from('ff ff ff 07 this is no protobuf');
  for (let round = 1; round <= 3; round += 1) {
    const bad = other.stream();
    bad.bytes(garbage);
    // INVALID_ARGUMENT; an ext_proc stream ends with OK, which lets its request go on.
    expect(await bad.status).toBe(3);
    expect([0, 3]).toContain(await other.process(garbage));
  }
  good.entries(answered({ key: '2', cluster: 'theirs', startMs: Date.now() }));
  await until('some traffic', () => client.log.length > 500);
  await stop();

  const seen = await counts(sidelight, { reporter_workload: 'beside' }, client.log.length);
  expect(failures()).toBe(0);
  expect(seen.outcomes).toEqual({ ok: client.log.length });
  expect(upstreams.requests()).toBe(client.log.length);
  expect((await counts(sidelight, { cluster: 'theirs' }, 2)).outcomes).toEqual({ ok: 2 });
  expect(await sidelight.metric('sidelight_self_decode_errors_total', { stream: 'access_log' })).toBe(3);
  expect(await sidelight.metric('sidelight_self_decode_errors_total', { stream: 'ext_proc' })).toBe(3);
  good.end();
  expect(await good.status).toBe(0);
});
