import { createServer } from 'node:http';
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import type { Cluster } from '../../src/lab/envoy-config.ts';
import { grpcCall, http2Client } from '../../src/lab/http2-client.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { toApp } from '../fixtures/cases/parts.ts';
import { extProc, startScene } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/* What ext_proc services were publicly reported to break, or to break on. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const always = { tagging: { responseHeaders: 'always' } } as const;
const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const headers = { traceparent: `00-${caller.traceId}-${caller.spanId}-01` };

/** Refuses what has the header `x-refuse`, before ext_proc sees the request. */
const refuser = {
  name: 'envoy.filters.http.fault',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault',
    abort: { percentage: { numerator: 100 }, http_status: 403 },
    headers: [{ name: 'x-refuse', present_match: true }],
  },
};

describe.each([
  { base: 'full', inject: false },
  { base: 'tag', inject: true },
] as const)('a POST without a body, of content-length 0, in profile $base, inject $inject', ({ base, inject }) => {
  it('arrives as it was sent, and its response is tagged', async () => {
    const scene = await startScene(cleanup, { name: `empty-post-${base}`, base, inject, config: always });
    const response = await scene.client.request('/', { method: 'POST', headers: { 'content-length': '0' } });
    expect(scene.arrived.map(({ method, headers: sent }) => [method, sent['content-length']])).toEqual([['POST', '0']]);
    expect([response.status, response.bodyBytes, response.headers['x-sidelight-attempts']]).toEqual([200, 4, '1']);
  });
});

describe.each(['full', 'tag'] as const)('a response phase without a request phase, in profile %s', (base) => {
  it('is tagged without a claim on an id that nobody injected', async () => {
    const scene = await startScene(cleanup, {
      name: `refused-${base}`,
      base,
      inject: true,
      adapt: (hcm) => void hcm.http_filters?.unshift(refuser),
    });
    const { status } = await scene.client.request('/', { headers: { ...headers, 'x-refuse': 'yes' } });
    const [line] = await scene.envoy.lines(1);
    expect(status).toBe(403);
    expect(line?.sidelight).toEqual({ cluster: 'app', attempts: 0, retried: false, pin: 'unknown', profile: base });
    const [exchange] = await scene.otlp.exchanges(() => true, 1);
    expect(exchange?.span).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId });
    expect(await scene.sidelight.metric('sidelight_self_fail_open_total')).toBe(0);
  });
});

describe('observability mode, in which Envoy waits for no answer', () => {
  it('gets none: the request is untouched, counted, and its stream is closed', async () => {
    const scene = await startScene(cleanup, {
      name: 'observability',
      base: 'tag',
      inject: true,
      config: always,
      adapt: (hcm) => void Object.assign(extProc(hcm), { observability_mode: true, deferred_close_timeout: '0.2s' }),
    });
    const response = await scene.client.request('/', { headers });
    const [exchange] = await scene.otlp.exchanges(() => true, 1);
    const stats = await scene.envoy.admin.stats('http.http.ext_proc');
    const [line] = await scene.envoy.lines(1);

    expect([response.status, Object.keys(response.headers).filter((name) => name.startsWith('x-sidelight'))]).toEqual([
      200,
      [],
    ]);
    expect(line?.sidelight).toBeNull();
    expect(scene.arrived[0]?.headers['traceparent']).toBe(headers.traceparent);
    expect(exchange?.span).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId });
    expect(stats.get('http.http.ext_proc.sidelight.stream_msgs_sent')).toBe(2);
    expect(stats.get('http.http.ext_proc.sidelight.stream_msgs_received')).toBe(0);
    expect(stats.get('http.http.ext_proc.sidelight.streams_failed')).toBe(0);
    const open = () => scene.sidelight.metric('sidelight_self_streams', { stream: 'ext_proc' });
    await until('the stream to be closed', async () => (await open()) === 0);
  });
});

describe('gRPC through ext_proc, both phases', () => {
  it.each([
    ['a status in trailers', { kind: 'grpc', grpcStatus: 0 }, 0],
    ['a failure in trailers', { kind: 'grpc', grpcStatus: 14 }, 14],
    ['a failure in nothing but headers', { kind: 'grpc', grpcStatus: 5, trailersOnly: true }, 5],
    ['no status at all', { kind: 'grpc' }, undefined],
  ] as const)('%s reaches the client as the upstream sent it, tagged', async (_, behaviour, grpcStatus) => {
    const scene = await startScene(cleanup, {
      name: 'grpc',
      base: 'tag',
      inject: true,
      http2Upstream: true,
      config: always,
      routes: [toApp()],
      handler: () => behaviour,
    });
    const client = cleanup.use(await http2Client(scene.envoy.port('http')));
    const response = await client.request('/lab.Echo/Say', grpcCall);
    expect([response.status, response.error, response.grpcStatus]).toEqual([200, undefined, grpcStatus]);
    expect(response.headers['x-sidelight-attempts']).toBe('1');
    expect(response.bodyBytes).toBe('trailersOnly' in behaviour ? 0 : 5);
  });
});

it('attributes that a config does not send are tags that are not there, and nothing else changes', async () => {
  const scene = await startScene(cleanup, {
    name: 'few-attributes',
    base: 'tag',
    adapt: (hcm) => {
      extProc(hcm)['response_attributes'] = ['xds.cluster_name', 'upstream.no_such_attribute'];
    },
  });
  const { status } = await scene.client.request('/');
  const [line] = await scene.envoy.lines(1);
  expect(status).toBe(200);
  expect(line?.sidelight).toEqual({
    cluster: 'app',
    retried: false,
    connection_id: String(line?.connectionId),
    connection_age_ms: expect.any(Number),
    pin: 'unknown',
    profile: 'tag',
  });
});

/** A cluster of one place, in Envoy's own words. */
function clusterAt(address: object): Cluster {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address } }] }];
  return { name: 'elsewhere', type: 'STATIC', load_assignment: { cluster_name: 'elsewhere', endpoints } };
}

describe('the endpoint tag of an upstream', () => {
  const tagOf = async (name: string, where: { path: string } | { host: string; port: number }) => {
    const server = createServer((_, response) => response.end());
    await new Promise<void>((resolve) => server.listen(where, resolve));
    cleanup.defer(() => {
      server.close();
      server.closeAllConnections();
    });
    const bound = server.address();
    const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
    const address =
      'path' in where ? { pipe: { path: where.path } } : { socket_address: { address: where.host, port_value: port } };
    const scene = await startScene(cleanup, {
      name,
      base: 'tag',
      clusters: [clusterAt(address)],
      routes: [toApp({ cluster: 'elsewhere' })],
    });
    await scene.client.request('/');
    const [line] = await scene.envoy.lines(1);
    return { endpoint: line?.sidelight?.['endpoint'], port };
  };

  it('on a unix socket is its path', async () => {
    const socket = path.join(cleanup.use(tempDir()).path, 'app.sock');
    expect((await tagOf('pipe', { path: socket })).endpoint).toBe(socket);
  });

  it('on IPv6 is the address in brackets, with its port', async ({ skip }) => {
    const addresses = Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
    if (!addresses.some(isIPv6)) skip('this machine has no IPv6');
    const { endpoint, port } = await tagOf('ipv6', { host: '::1', port: 0 });
    expect(endpoint).toBe(`[::1]:${port}`);
  });
});
