import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBlackhole } from '../../src/lab/blackhole.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import type { Cluster, Json } from '../../src/lab/envoy-config.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { istioRetries, manyRetries } from '../../src/lab/istio-defaults.ts';
import { drive } from '../../src/lab/load.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { counts } from '../support/counts.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { cleaned, routeTo, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';

/* Dead endpoints, rollouts and layers on a real Envoy, each in the short form of a run in a real mesh. */
const everything = new Cleanup();
let otlp: OtlpReceiver;
let sidelight: TestSidelight;

beforeAll(async () => {
  otlp = everything.use(await startOtlpReceiver());
  sidelight = everything.use(await startTestSidelight({ otlp: { endpoint: otlp.endpoint } }));
});
afterAll(() => everything.run());

async function startEnvoyFor(cleanup: Cleanup, cluster: Cluster, retry?: Json, route?: Json) {
  const { name } = cluster;
  const options = { sidelightPort: sidelight.grpcPort, clusters: [cluster], routes: [routeTo(name, retry, route)] };
  return startReporter(cleanup, name, options);
}

/** Sends 86 requests, eight at once, to a cluster one of whose two addresses is dead. */
async function playDeadAddress(cleanup: Cleanup, name: string, retry?: Json) {
  const dead = cleanup.use(await startBlackhole('127.0.0.13'));
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.12'] }));
  const addresses = [`${dead.ip}:${dead.port}`, ...upstreams.addresses];
  const envoy = await startEnvoyFor(cleanup, staticCluster(addresses, { name, extra: manyRetries }), retry);
  const client = cleanup.use(http1Client(envoy.port('http'), 8));
  await drive(() => client.request('/'), { concurrency: 8, total: 86 });
  const seen = await counts(sidelight, { cluster: name }, 86);
  return { client, envoy, upstreams, seen, dead: addresses[0] ?? '' };
}

describe.concurrent('B, a dead endpoint', () => {
  it(
    'B1 retries hide it: effective 100 %, first-try, actual, amplification and the price, in every trace',
    cleaned(async (cleanup) => {
      const { client, envoy, upstreams, seen, dead } = await playDeadAddress(cleanup, 'b1', istioRetries);
      expect(client.log.every(({ ok }) => ok)).toBe(true);
      const { masked = 0, ok } = seen.outcomes;
      expect(masked).toBeGreaterThan(0);
      expect(masked).toBe(await envoy.admin.stat('cluster.b1.upstream_rq_retry_success'));
      expect(seen.outcomes).toEqual({ ok: 86 - masked, masked });
      expect(ok).toBe(client.log.length - masked);
      expect(seen.attempts).toEqual({
        [`${dead} connect_timeout`]: masked,
        [`${upstreams.addresses[0]} ok`]: 86,
      });
      expect(upstreams.requests()).toBe(86);
      expect(await seen.metric('sidelight_attempted_requests_total')).toBe(86);
      expect(await seen.metric('sidelight_attempts_total')).toBe(86 + masked);
      const hiddenS = await seen.metric('sidelight_masked_latency_seconds_sum', { cause: 'connect_timeout' });
      expect(await seen.metric('sidelight_masked_latency_seconds_count')).toBe(masked);

      const traces = await otlp.exchanges(
        (span) => span.service === 'b1' && span.attributes['sidelight.outcome'] === 'masked',
        masked,
      );
      expect(traces).toHaveLength(masked);
      for (const {
        attempts: [first, second, ...more],
      } of traces) {
        expect([first?.attributes['sidelight.cause'], second?.attributes['sidelight.result'], more.length]).toEqual([
          'connect_timeout',
          'ok',
          0,
        ]);
        expect(second?.startMs).toBeGreaterThanOrEqual(first?.endMs ?? Infinity);
      }
      // Envoy 1.40 lets all who wait for a connection to a host fail together, so most attempts are shorter than the timeout.
      const hiddenMs = traces.map(
        ({ attempts: [first, second] }) => (second?.startMs ?? NaN) - (first?.startMs ?? NaN),
      );
      expect(hiddenS).toBeCloseTo(hiddenMs.reduce((sum, ms) => sum + ms, 0) / 1000, 2);
      expect(Math.max(...hiddenMs)).toBeGreaterThanOrEqual(245);
      expect(hiddenS * 1000).toBeLessThan(client.log.reduce((sum, { durationMs }) => sum + durationMs, 0));
    }),
  );

  it(
    'B2 without retries the failures surface: none masked, the rest failed, not retried',
    cleaned(async (cleanup) => {
      const { client, envoy, seen, dead } = await playDeadAddress(cleanup, 'b2');
      const failed = client.log.filter(({ status }) => status === 503).length;
      expect(failed).toBeGreaterThan(0);
      expect(seen.outcomes).toEqual({ ok: 86 - failed, failed });
      expect(seen.attempts[`${dead} connect_timeout`]).toBe(failed);
      expect(await envoy.admin.stat('cluster.b2.upstream_rq_retry')).toBe(0);
      const [trace] = await otlp.exchanges(
        (span) => span.service === 'b2' && span.attributes['sidelight.outcome'] === 'failed',
        failed,
      );
      expect(trace?.span.attributes).toMatchObject({
        'sidelight.cause': 'connect_timeout',
        'sidelight.retry.denied': 'none',
        'sidelight.flags': 'UF',
      });
    }),
  );
});

describe.concurrent('C, a rollout', () => {
  it(
    'C2 nothing went wrong, and the zeros are known zeros: a proxy reports',
    cleaned(async (cleanup) => {
      const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.14'] }));
      const envoy = await startEnvoyFor(cleanup, staticCluster(upstreams.addresses, { name: 'c2' }), istioRetries);
      const client = cleanup.use(http1Client(envoy.port('http'), 4));
      await drive(() => client.request('/'), { concurrency: 4, total: 50 });
      const seen = await counts(sidelight, { cluster: 'c2' }, 50);
      expect(seen.outcomes).toEqual({ ok: 50 });
      const text = await sidelight.get('/metrics');
      for (const outcome of ['masked', 'failed', 'exhausted', 'aborted', 'unknown'])
        expect(text).toMatch(
          new RegExp(`^sidelight_requests_total\\{[^}]*cluster="c2"[^}]*outcome="${outcome}"\\} 0$`, 'm'),
        );
      const { reporters } = await sidelight.json<{ reporters: { workload: string; streams: number }[] }>(
        '/api/v1/reporters',
      );
      expect(reporters.find(({ workload }) => workload === 'c2')?.streams).toBe(1);
    }),
  );
});

describe.concurrent('E, layers', () => {
  it(
    'E2 the circuit breaker is full: local, and no attempt reached a peer',
    cleaned(async (cleanup) => {
      const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.17'] }));
      const breakers = { circuit_breakers: { thresholds: [{ max_connections: 1, max_pending_requests: 1 }] } };
      const envoy = await startEnvoyFor(cleanup, staticCluster(upstreams.addresses, { name: 'e2', extra: breakers }));
      const client = cleanup.use(http1Client(envoy.port('http'), 10));
      await drive(() => client.request('/slow/300'), { concurrency: 10, total: 20 });
      const full = client.log.filter(({ status }) => status === 503).length;
      expect(full).toBeGreaterThan(0);
      const seen = await counts(sidelight, { cluster: 'e2' }, 20);
      expect(seen.outcomes).toEqual({ ok: 20 - full, 'local server_error': full });
      expect(await seen.metric('sidelight_attempts_total')).toBe(upstreams.requests());
      const locals = await otlp.exchanges(
        (span) => span.service === 'e2' && span.attributes['sidelight.outcome'] === 'local',
        full,
      );
      for (const { span } of locals) expect(span.attributes['sidelight.flags']).toBe('UO');
    }),
  );

  it(
    'E2 the retry breaker is full: the upstream’s own 503, and the retry was denied',
    cleaned(async (cleanup) => {
      const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.17'] }));
      const breakers = { circuit_breakers: { thresholds: [{ max_retries: 0 }] } };
      const envoy = await startEnvoyFor(
        cleanup,
        staticCluster(upstreams.addresses, { name: 'e2-retry', extra: breakers }),
        { retry_on: '5xx' },
      );
      const client = cleanup.use(http1Client(envoy.port('http'), 2));
      await drive(() => client.request('/status/503'), { concurrency: 2, total: 10 });
      const seen = await counts(sidelight, { cluster: 'e2-retry' }, 10);
      expect(seen.outcomes).toEqual({ failed: 10 });
      const failed = await otlp.exchanges((span) => span.service === 'e2-retry', 10);
      for (const { span } of failed) expect(span.attributes['sidelight.retry.denied']).toBe('overflow');
    }),
  );

  it(
    'E3 a cluster without endpoints: local, UH, and its name',
    cleaned(async (cleanup) => {
      const envoy = await startEnvoyFor(cleanup, staticCluster([], { name: 'e3' }), istioRetries);
      const client = cleanup.use(http1Client(envoy.port('http')));
      await drive(() => client.request('/'), { concurrency: 1, total: 5 });
      expect(client.log.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
      const seen = await counts(sidelight, { cluster: 'e3' }, 5);
      expect(seen.outcomes).toEqual({ 'local server_error': 5 });
      expect(seen.attempts).toEqual({});
      const [trace] = await otlp.exchanges((span) => span.service === 'e3', 5);
      expect(trace?.span.attributes).toMatchObject({ 'sidelight.flags': 'UH', 'sidelight.cluster': 'e3' });
    }),
  );
});
