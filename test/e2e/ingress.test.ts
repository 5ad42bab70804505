import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import { createTagger } from '../../src/ingress/tagger.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import {
  accessLogs,
  type Bootstrap,
  type FilterConfig,
  labConfig,
  type ShippedConfig,
} from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { drive } from '../../src/lab/load.ts';
import { current, TestIngress } from '../support/ingress.ts';
import { limits } from '../support/wire.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const tagger = createTagger({
  responseHeaders: 'always',
  debugSecret: undefined,
  random: Math.random,
  injectRootSampled: () => true,
  pinOf: () => current,
  tagged: () => undefined,
});

/** Tells its path, its traceparent and its body. */
async function startUpstream(): Promise<number> {
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    incoming.on('end', () => response.end(JSON.stringify({ body, traceparent: incoming.headers['traceparent'] })));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanup.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

interface Set {
  ingress: TestIngress;
  envoy: EnvoyProcess;
}

async function start(
  base: ShippedConfig,
  options: Parameters<typeof TestIngress.start>[0] = {},
  adapt: (config: Bootstrap) => void = () => undefined,
  inject = false,
): Promise<Set> {
  const ingress = await TestIngress.start({ tagger, ...options });
  cleanup.use(ingress);
  ingress.ingress.setServing(true);
  const clusters = [staticCluster([`127.0.0.1:${await startUpstream()}`], { name: 'app' })];
  const config = labConfig({ base, sidelightPort: ingress.port, clusters, inject });
  adapt(config);
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === 1);
  return { ingress, envoy };
}

function filtersOf(config: Bootstrap): FilterConfig[] {
  return config.static_resources.listeners
    .flatMap(({ filter_chains }) => filter_chains.flatMap((chain) => chain.filters))
    .map(({ typed_config }) => typed_config);
}

/** A request that gives the parsed body and all headers. */
function send(envoy: EnvoyProcess, headers: Record<string, string> = {}, body?: string) {
  return new Promise<{ status: number; headers: object; seen: { body: string; traceparent?: string } }>(
    (resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST';
      const sent = request({ host: '127.0.0.1', port: envoy.port('http'), method, path: '/x', headers }, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, seen: JSON.parse(text) }),
        );
      });
      sent.on('error', reject);
      sent.end(body);
    },
  );
}

const loggedEnds = ({ sink }: TestIngress) => sink.received.filter(({ entry }) => entry.type === 'downstream_end');

test('tags reach the client as headers; the internal headers do not', async () => {
  const { envoy } = await start('tag', {}, patient);
  const { status, headers } = await send(envoy);
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'x-sidelight-cluster': 'app',
    'x-sidelight-endpoint': expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    'x-sidelight-attempts': '1',
    'x-sidelight-retried': 'false',
    'x-sidelight-connection-id': expect.stringMatching(/^[1-9]\d*$/),
    'x-sidelight-connection-age-ms': expect.stringMatching(/^[\d.]+$/),
    'x-sidelight-pin': 'current',
    'x-sidelight-profile': 'tag',
  });
  expect(Object.keys(headers).filter((name) => name.includes('internal'))).toEqual([]);
});

test('inject: the upstream gets a child of the caller’s span, and the log brings the same ids back', async () => {
  const { envoy, ingress } = await start('full', {}, patient, true);
  const { seen } = await send(envoy, { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' });
  const [, traceId, spanId, flags] = (seen.traceparent ?? '').split('-');
  expect({ traceId, flags }).toEqual({ traceId: '0af7651916cd43dd8448eb211c80319c', flags: '01' });
  expect(spanId).not.toBe('b7ad6b7169203331');
  await vi.waitFor(() => expect(loggedEnds(ingress)).toHaveLength(1), 5000);
  expect(loggedEnds(ingress)[0]?.entry.tags).toMatchObject({
    traceparent: seen.traceparent,
    injected: { traceId, spanId, parentSpanId: 'b7ad6b7169203331', sampled: true },
  });
});

// Each request is a stream that Envoy resets; Node by default cuts the connection after some thousand of them.
test('thousands of requests, each reset by Envoy: every one tagged and logged, on one connection', async () => {
  const { envoy, ingress } = await start('full', {}, patient);
  const client = http1Client(envoy.port('http'), 8);
  cleanup.use(client);
  await drive(() => client.request('/x'), { concurrency: 8, total: 3000 });

  expect(client.log.filter(({ ok }) => !ok)).toEqual([]);
  expect(client.log.filter(({ headers }) => headers['x-sidelight-pin'] !== 'current')).toEqual([]);
  await vi.waitFor(() => expect(loggedEnds(ingress)).toHaveLength(3000), 10_000);
  expect(new Set(loggedEnds(ingress).map(({ entry }) => entry.key)).size).toBe(3000);
  expect(await envoy.admin.stat('cluster.sidelight.upstream_cx_destroy_remote')).toBe(0);
});

test('log streams that end all the time lose no entry, while Envoy sends at each beat and not for want of room', async () => {
  const { envoy, ingress } = await start('full', { logStreamMaxAgeMs: 100 }, patient);
  const client = http1Client(envoy.port('http'), 4);
  cleanup.use(client);
  await drive(() => client.request('/x'), { concurrency: 4, total: 200, pauseMs: 50 });

  await vi.waitFor(() => expect(loggedEnds(ingress)).toHaveLength(200), 10_000);
  expect(ingress.sink.streams.length).toBeGreaterThan(2);
});

test('an idle Envoy keeps its stream past the maximum age; one that was ended it opens again at its next entry only', async () => {
  const { envoy, ingress } = await start('observe', { logStreamMaxAgeMs: 300 });
  const client = http1Client(envoy.port('http'));
  cleanup.use(client);
  await client.request('/x');
  await vi.waitFor(() => expect(loggedEnds(ingress)).toHaveLength(1), 5000);
  await sleep(3000);
  expect(ingress.sink.closedIds).toEqual([]);
  expect(await envoy.admin.stat('cluster.sidelight.upstream_rq_active')).toBe(1);

  await client.request('/x');
  await vi.waitFor(() => expect(ingress.sink.closedIds).toEqual([1]), 5000);
  expect(loggedEnds(ingress)).toHaveLength(2);
  await sleep(2000);
  expect(ingress.sink.streams).toHaveLength(1);

  await client.request('/x');
  await vi.waitFor(() => expect(ingress.sink.streams).toHaveLength(2), 5000);
  await vi.waitFor(() => expect(loggedEnds(ingress)).toHaveLength(3), 5000);
});

/** Times that a loaded machine does not break. */
function patient(config: Bootstrap): void {
  for (const filter of filtersOf(config)) {
    for (const log of accessLogs(filter)) log.typed_config.common_config['buffer_flush_interval'] = '0.5s';
    for (const { name, typed_config } of filter.http_filters ?? []) {
      if (name === 'envoy.filters.http.ext_proc.sidelight') typed_config['message_timeout'] = '5s';
    }
  }
}

test('a stream that is ended with OK lets its request go on: no tags, no error, no delay', async () => {
  const { envoy, ingress } = await start('tag', { limits: { ...limits, logStreams: 9, processStreams: 0 } });
  const { status, headers } = await send(envoy);
  expect(status).toBe(200);
  expect(headers).not.toHaveProperty('x-sidelight-pin');
  expect(ingress.events).toMatchObject({ 'refused ext_proc too_many_streams': 1 });
  expect(await envoy.admin.stat('http.http.ext_proc.sidelight.message_timeouts')).toBe(0);
});

test.each(['BUFFERED', 'STREAMED', 'FULL_DUPLEX_STREAMED'])(
  'a foreign config that sends bodies as %s: they arrive whole at both ends',
  async (mode) => {
    const { envoy, ingress } = await start('tag', {}, (config) => {
      sendEverything(config, mode);
    });
    const body = 'b'.repeat(200_000);
    const { status, seen } = await send(envoy, {}, body);
    expect(status).toBe(200);
    // Not the texts themselves: a failure would print 200 kB.
    expect([seen.body.length, seen.body === body]).toEqual([body.length, true]);
    expect(ingress.events['message ext_proc']).toBeGreaterThan(3);
    expect(ingress.events).not.toHaveProperty('failOpen');
  },
);

/** Every phase is sent. Full duplex bodies need `failure_mode_allow` off and trailers on. */
function sendEverything(config: Bootstrap, mode: string): void {
  const filters = filtersOf(config).flatMap(({ http_filters = [] }) => http_filters);
  const filter = filters.find(({ name }) => name === 'envoy.filters.http.ext_proc.sidelight');
  if (!filter) throw new Error('no ext_proc filter in the shipped config');
  filter.typed_config['failure_mode_allow'] = mode !== 'FULL_DUPLEX_STREAMED';
  filter.typed_config['processing_mode'] = {
    request_header_mode: 'SEND',
    response_header_mode: 'SEND',
    request_body_mode: mode,
    response_body_mode: mode,
    request_trailer_mode: 'SEND',
    response_trailer_mode: 'SEND',
  };
}

test('a drain under load fails no request, and no entry of what had finished is lost', async () => {
  const { envoy, ingress } = await start('full');
  const client = http1Client(envoy.port('http'), 4);
  cleanup.use(client);
  const stop = new AbortController();
  const load = drive(() => client.request('/x'), { concurrency: 4, signal: stop.signal });
  await vi.waitFor(() => expect(client.log.length).toBeGreaterThan(200), 10_000);
  const finishedBefore = client.log.length;
  await ingress.ingress.drain(3000);
  const finishedMeanwhile = client.log.length;
  await vi.waitFor(() => expect(client.log.length).toBeGreaterThan(finishedMeanwhile + 100), 10_000);
  stop.abort();
  await load;
  expect(client.log.filter(({ ok }) => !ok)).toEqual([]);
  expect(new Set(loggedEnds(ingress).map(({ entry }) => entry.key)).size).toBeGreaterThanOrEqual(finishedBefore);
  expect(ingress.sink.closedIds.length).toBe(ingress.sink.streams.length);
});
