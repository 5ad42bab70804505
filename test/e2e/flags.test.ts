import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { labConfig } from '../../src/lab/envoy-config.ts';
import { startEnvoy } from '../../src/lab/envoy-process.ts';
import { cases } from '../fixtures/cases/index.ts';
import { expectedHttp, expectedTcp, spell } from '../support/expected-verdicts.ts';
import { type OtlpReceiver, type ReceivedExchange, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/*
 * Every case that is recorded as a fixture, played again: a real Envoy with envoy/observe.yaml, the whole service, and
 * spans over real OTLP. A new Envoy that behaves otherwise turns a case red.
 */
const everything = new Cleanup();
let otlp: OtlpReceiver;
let sidelight: TestSidelight;
const envoyBin = findEnvoy().path;

beforeAll(async () => {
  otlp = everything.use(await startOtlpReceiver());
  sidelight = everything.use(await startTestSidelight({ otlp: { endpoint: otlp.endpoint } }));
});
afterAll(() => everything.run());

/** Plays a case on a fresh Envoy whose node is named after it. */
async function play(name: string): Promise<number> {
  const cleanup = new Cleanup();
  try {
    const make = cases[name];
    if (make === undefined) throw new Error(`no case ${name}`);
    const { config, run } = await make(cleanup);
    const envoyConfig = labConfig({ base: 'observe', sidelightPort: sidelight.grpcPort, ...config });
    envoyConfig['node'] = { id: name, cluster: name };
    const envoy = cleanup.use(await startEnvoy({ bin: envoyBin, config: envoyConfig }));
    // Before its first health check Envoy has no service to log to.
    await until(
      'a healthy service',
      async () => (await envoy.admin.stat('cluster.sidelight.membership_healthy')) === 1,
    );
    const seen = await run(envoy);
    // Envoy keeps entries back for the flush interval (50 ms here); a mirror's comes when the mirror ends.
    await sleep(500);
    return seen.length;
  } finally {
    await cleanup.run();
  }
}

function inWords({ span: { attributes: is } }: ReceivedExchange): string {
  return spell({
    outcome: is['sidelight.outcome'],
    phase: is['sidelight.phase'],
    failedBeforeAbort: is['sidelight.failed_before_abort'],
    failedPhase: is['sidelight.failed.phase'],
    retryDenied: is['sidelight.retry.denied'],
    localResult: is['sidelight.local.result'],
    cause: is['sidelight.cause'],
    hedged: is['sidelight.hedged'],
  });
}

const results = ({ attempts }: ReceivedExchange) =>
  attempts.map(({ attributes }) => attributes['sidelight.cause'] ?? attributes['sidelight.result']);

describe.concurrent('what a real Envoy does has the outcome, results and causes of the design', {
  timeout: 60_000,
}, () => {
  it.each(Object.entries(expectedHttp))('%s', async (name, [outcome, attempts]) => {
    await play(name);
    const [exchange, ...more] = await otlp.exchanges((span) => span.service === name, 1);
    expect(more).toEqual([]);
    expect(exchange && inWords(exchange)).toBe(outcome);
    expect(exchange && results(exchange)).toEqual(attempts);
  });

  it.each(Object.entries(expectedTcp))('%s', async (name, resultOrCause) => {
    await play(name);
    const labels = { reporter_workload: name };
    await until(
      'the connection to be counted',
      async () => (await sidelight.metric('sidelight_tcp_connections_total', labels)) === 1,
    );
    const ok = await sidelight.metric('sidelight_tcp_connections_total', { ...labels, result: 'ok' });
    const caused = await sidelight.metric('sidelight_tcp_connections_total', { ...labels, cause: resultOrCause });
    expect([ok, caused]).toEqual(resultOrCause === 'ok' ? [1, 0] : [0, 1]);
  });

  it('direct-response', async () => {
    await play('direct-response');
    const exchanges = await otlp.exchanges((span) => span.service === 'direct-response', 3);
    expect(exchanges.map(inWords)).toEqual(['local success', 'local client_error', 'local server_error']);
  });

  it('mirror-of-retried-request: a mirror adds no attempt and no exchange', async () => {
    await play('mirror-of-retried-request');
    const exchanges = await otlp.exchanges((span) => span.service === 'mirror-of-retried-request', 2);
    expect(exchanges.map(results)).toEqual([
      ['status_5xx', 'ok'],
      ['status_5xx', 'ok'],
    ]);
  });

  it('pool-overflow-max-requests', async () => {
    await play('pool-overflow-max-requests');
    const exchanges = await otlp.exchanges((span) => span.service === 'pool-overflow-max-requests', 2);
    expect(exchanges.map(inWords).toSorted()).toEqual(['local server_error', 'ok']);
  });

  it('shared-request-id: twenty concurrent streams, one x-request-id, a spoofed key, five retried', async () => {
    await play('shared-request-id');
    const exchanges = await otlp.exchanges((span) => span.service === 'shared-request-id', 20);
    expect(exchanges).toHaveLength(20);
    expect(exchanges.filter((exchange) => inWords(exchange) === 'masked status_5xx').map(results)).toEqual(
      Array.from({ length: 5 }, () => ['status_5xx', 'ok']),
    );
    expect(exchanges.filter((exchange) => inWords(exchange) === 'ok').map(results)).toEqual(
      Array.from({ length: 15 }, () => ['ok']),
    );
    expect(new Set(exchanges.map(({ span }) => span.attributes['sidelight.request_id'])).size).toBe(1);
  });
});

it('every exchange that was traced was counted, and nothing was lost on the way', async () => {
  const traced = otlp.spans.filter((span) => 'sidelight.outcome' in span.attributes).length;
  expect(traced).toBeGreaterThan(0);
  expect(await sidelight.metric('sidelight_requests_total')).toBe(traced);
  expect(await sidelight.metric('sidelight_self_decode_errors_total')).toBe(0);
  expect(await sidelight.metric('sidelight_self_join_events_total', { event: 'late' })).toBe(0);
});
