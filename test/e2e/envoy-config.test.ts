import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import { Cleanup } from '../../src/lab/cleanup.ts';
import {
  type AccessLog,
  accessLogs,
  type Bootstrap,
  type FilterConfig,
  type HttpFilter,
  type Json,
  labConfig,
  type ShippedConfig,
  shippedConfig,
  shippedConfigFile,
} from '../../src/lab/envoy-config.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';

const bin = findEnvoy().path;
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

function validate(file: string): string {
  const { stdout, stderr } = spawnSync(bin, ['--mode', 'validate', '-c', file], { encoding: 'utf8' });
  return stdout + stderr;
}

function networkFilters(config: Bootstrap): FilterConfig[] {
  const chains = config.static_resources.listeners.flatMap((listener) => listener.filter_chains);
  return chains.flatMap((chain) => chain.filters.map(({ typed_config }) => typed_config));
}

const logs = (name: ShippedConfig): AccessLog[] => networkFilters(shippedConfig(name)).flatMap(accessLogs);
const httpFilters = (name: ShippedConfig): HttpFilter[] =>
  networkFilters(shippedConfig(name)).flatMap((filter) => filter.http_filters ?? []);
const cluster = (name: ShippedConfig): Json | undefined =>
  shippedConfig(name).static_resources.clusters.find((each) => each.name === 'sidelight');
const http2 = (name: ShippedConfig): unknown => {
  const options = cluster(name)?.['typed_extension_protocol_options'] as Record<string, Json>;
  const http = options['envoy.extensions.upstreams.http.v3.HttpProtocolOptions'];
  return (http?.['explicit_http_config'] as Json | undefined)?.['http2_protocol_options'];
};
const extProc = (name: ShippedConfig): Json | undefined =>
  httpFilters(name).find((filter) => filter.name === 'envoy.filters.http.ext_proc.sidelight')?.typed_config;

const everyConfig: ShippedConfig[] = ['observe', 'full', 'tag'];
const withLog: ShippedConfig[] = ['observe', 'full'];
const withExtProc: ShippedConfig[] = ['full', 'tag'];

describe.each(everyConfig)('envoy/%s.yaml', (name) => {
  it('is accepted by Envoy as it is', () => {
    expect(validate(fileURLToPath(shippedConfigFile(name)))).toMatch(/configuration '.*' OK/);
  });

  it('uses nothing that Envoy deprecates', () => {
    expect(validate(fileURLToPath(shippedConfigFile(name)))).not.toMatch(/deprecated/i);
  });

  it('listens on loopback alone', () => {
    const text = JSON.stringify(shippedConfig(name));
    const addresses = [...text.matchAll(/"address":"([^"]+)"/g)].map((match) => match[1]);
    expect(new Set(addresses)).toEqual(new Set(['127.0.0.1']));
  });

  it('sets the key before any filter and over what the client sent', () => {
    const [http] = networkFilters(shippedConfig(name));
    expect(http?.['early_header_mutation_extensions']).toEqual([
      {
        name: 'envoy.http.early_header_mutation.header_mutation',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation',
          mutations: [
            {
              append: {
                header: { key: 'x-sidelight-key', value: '%CONNECTION_ID%.%START_TIME(%s%9f)%' },
                append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
              },
            },
          ],
        },
      },
    ]);
  });

  it('puts a hanging service out by its health, without panic mode, and bounds what waits for it', () => {
    expect(cluster(name)).toMatchObject({
      connect_timeout: '0.25s',
      health_checks: [
        { interval: '1s', no_traffic_interval: '1s', timeout: '0.3s', unhealthy_threshold: 2, healthy_threshold: 1 },
      ],
      common_lb_config: { healthy_panic_threshold: { value: 0 } },
    });
    expect(http2(name)).toMatchObject({ connection_keepalive: { interval: '10s', timeout: '5s' } });
    expect(cluster(name)).toHaveProperty('circuit_breakers.thresholds.0.max_requests', name === 'observe' ? 256 : 1024);
  });
});

describe.each(withLog)('the logs of envoy/%s.yaml', (name) => {
  it('hold back four mebibytes for a service that does not read', () => {
    expect(http2(name)).toMatchObject({ initial_stream_window_size: 4_194_304 });
  });

  it('have one common_config, so that they share a stream', () => {
    expect(logs(name)).toHaveLength(name === 'observe' ? 3 : 2);
    const configs = logs(name).map((log) => JSON.stringify(log.typed_config.common_config));
    expect(new Set(configs).size).toBe(1);
  });

  it('tell of a long request and of a long TCP connection every five seconds while it lives', () => {
    const router = httpFilters(name).find((filter) => filter.name === 'envoy.filters.http.router');
    expect(router?.typed_config.upstream_log_options).toEqual({ upstream_log_flush_interval: '5s' });
    const tcp = networkFilters(shippedConfig(name)).flatMap((filter) => filter.access_log_options ?? []);
    const everyFive = { flush_access_log_on_connected: true, access_log_flush_interval: '5s' };
    expect(tcp).toEqual(name === 'observe' ? [everyFive] : []);
  });

  it('say their profile and carry the tags that the service reads', () => {
    const common = logs(name)[0]?.typed_config.common_config;
    expect(common).toMatchObject({
      log_name: `sidelight.${name}.2`,
      buffer_flush_interval: '1s',
      buffer_size_bytes: 65_536,
    });
    expect(common?.['custom_tags']).toEqual([
      { tag: 'key', value: '%REQ(x-sidelight-key)%' },
      { tag: 'cluster', value: '%UPSTREAM_CLUSTER_RAW%' },
      { tag: 'connection_id', value: '%UPSTREAM_CONNECTION_ID%' },
      { tag: 'connection_age_us', value: '%COMMON_DURATION(US_CX_END:US_TX_BEG:us)%' },
      { tag: 'traceparent', value: '%REQ(traceparent)%' },
      { tag: 'trace_id', value: '%TRACE_ID%' },
      { tag: 'grpc_status', value: '%GRPC_STATUS_NUMBER%' },
      { tag: 'content_type', value: '%REQ(content-type)%' },
      { tag: 'attempt_count', value: '%REQ(x-envoy-attempt-count)%' },
      { tag: 'duration_ms', value: '%DURATION%' },
      { tag: 'upstream_protocol', value: '%UPSTREAM_PROTOCOL%' },
      { tag: 'response_connection', value: '%RESP(connection)%' },
    ]);
  });
});

describe.each(withExtProc)('ext_proc of envoy/%s.yaml', (name) => {
  it('lets the request go on whatever becomes of the service, and says its profile', () => {
    expect(extProc(name)).toMatchObject({
      failure_mode_allow: true,
      message_timeout: '0.2s',
      disable_immediate_response: true,
      route_cache_action: 'RETAIN',
      grpc_service: {
        envoy_grpc: { cluster_name: 'sidelight' },
        initial_metadata: [{ key: 'x-sidelight-profile', value: name }],
      },
    });
  });

  it('sends headers once, and only those that are read', () => {
    expect(extProc(name)).toMatchObject({
      processing_mode: {
        request_header_mode: 'SKIP',
        response_header_mode: 'SEND',
        request_body_mode: 'NONE',
        response_body_mode: 'NONE',
        request_trailer_mode: 'SKIP',
        response_trailer_mode: 'SKIP',
      },
      forward_rules: {
        allowed_headers: {
          patterns: [
            { exact: 'x-sidelight-internal-connection-id' },
            { exact: 'x-sidelight-internal-connection-age-us' },
            { exact: 'traceparent' },
          ],
        },
      },
    });
    expect(extProc(name)?.['request_attributes']).toBeUndefined();
  });

  it('may write its own metadata and its own response headers, nothing else', () => {
    expect(extProc(name)).toMatchObject({
      metadata_options: { receiving_namespaces: { untyped: ['sidelight'] } },
      mutation_rules: {
        disallow_all: true,
        allow_expression: {
          regex: '(x-sidelight-(cluster|endpoint|attempts|retried|connection-(id|age-ms)|pin|profile))',
        },
      },
    });
  });

  it('stands between the filter that takes the internal headers away and the one that adds them', () => {
    expect(httpFilters(name).map((filter) => filter.name)).toEqual([
      'envoy.filters.http.header_mutation.sidelight_remove',
      'envoy.filters.http.ext_proc.sidelight',
      'envoy.filters.http.header_mutation.sidelight_add',
      'envoy.filters.http.router',
    ]);
  });

  it('is accepted by Envoy in the inject variant, where `traceparent` alone may be written too', () => {
    const dir = cleanup.use(tempDir());
    const file = path.join(dir.path, 'inject.json');
    const config = labConfig({ base: name, inject: true, sidelightPort: 50_051, clusters: [] });
    writeFileSync(file, JSON.stringify(config));
    expect(validate(file)).toMatch(/configuration '.*' OK/);
    const filter = networkFilters(config).flatMap((each) => each.http_filters ?? [])[1]?.typed_config;
    expect(filter).toMatchObject({
      processing_mode: { request_header_mode: 'SEND' },
      mutation_rules: {
        allow_expression: {
          regex: '(traceparent|x-sidelight-(cluster|endpoint|attempts|retried|connection-(id|age-ms)|pin|profile))',
        },
      },
    });
  });
});
