import { describe, expect, it } from 'vitest';
import { type OtelSettings, type OtlpConfig, readOtelEnvironment } from '../../src/emit/otlp/environment.ts';
import { readDoc, tableOf } from '../support/doc-tables.ts';

const config: OtlpConfig = { endpoint: undefined, protocol: 'grpc', intervalMs: 10_000 };

function settings(env: Record<string, string>, overrides: Partial<OtlpConfig> = {}): OtelSettings {
  return readOtelEnvironment(env, { ...config, ...overrides }).settings;
}

const http = 'http://collector:4318';

describe('the environment', () => {
  it('is read as the docs list it, no variable more or less', () => {
    const read = new Set<string>();
    const env = new Proxy<Record<string, string>>(
      {},
      {
        get(_, name) {
          read.add(String(name));
          return undefined;
        },
      },
    );
    readOtelEnvironment(env, { ...config, endpoint: http });
    const listed = tableOf(readDoc('reference/environment.md'), ['variable', 'meaning', 'default']).map(
      ([name]) => name,
    );
    expect(new Set([...read].map((name) => `\`${name}\``))).toEqual(new Set(listed));
  });

  it('sends nothing without an endpoint, and has the defaults of OpenTelemetry', () => {
    expect(settings({})).toEqual({
      traces: undefined,
      metrics: undefined,
      metricIntervalMs: 10_000,
      metricTimeoutMs: 30_000,
      batch: { maxQueueSize: 2048, maxExportBatchSize: 512, scheduledDelayMs: 5000, exportTimeoutMs: 30_000 },
      serviceName: undefined,
      resourceAttributes: {},
    });
  });

  it('appends the path of the signal to a base URL, and takes the own URL of a signal as it is', () => {
    const { traces, metrics } = settings({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${http}/otlp/`,
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://prometheus:9090/api/v1/otlp/v1/metrics',
    });
    expect(traces?.url).toBe(`${http}/otlp/v1/traces`);
    expect(metrics?.url).toBe('http://prometheus:9090/api/v1/otlp/v1/metrics');
  });

  it('takes gRPC for granted on its port, and HTTP elsewhere, unless a protocol is named', () => {
    const protocolOf = (env: Record<string, string>): string | undefined => settings(env).traces?.protocol;
    expect(protocolOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4317' })).toBe('grpc');
    expect(protocolOf({ OTEL_EXPORTER_OTLP_ENDPOINT: http })).toBe('http/protobuf');
    expect(protocolOf({ OTEL_EXPORTER_OTLP_ENDPOINT: http, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toBe('grpc');
    const both = settings({
      OTEL_EXPORTER_OTLP_ENDPOINT: http,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/protobuf',
    });
    expect([both.traces?.protocol, both.traces?.url]).toEqual(['grpc', http]);
    expect([both.metrics?.protocol, both.metrics?.url]).toEqual(['http/protobuf', `${http}/v1/metrics`]);
  });

  it('goes before the config, whose protocol belongs to its own endpoint', () => {
    const fromConfig = { endpoint: 'http://from-config:9999', protocol: 'grpc' } as const;
    expect(settings({}, fromConfig).traces).toMatchObject({ url: 'http://from-config:9999', protocol: 'grpc' });
    expect(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: http }, fromConfig).traces).toMatchObject({
      url: `${http}/v1/traces`,
      protocol: 'http/protobuf',
    });
    expect(settings({}, { ...fromConfig, protocol: 'http/protobuf' }).metrics?.url).toBe(
      'http://from-config:9999/v1/metrics',
    );
    expect(settings({ OTEL_METRIC_EXPORT_INTERVAL: '777' }).metricIntervalMs).toBe(777);
  });

  it('has the own value of a signal go before the general one, and adds headers up', () => {
    const { traces, metrics } = settings({
      OTEL_EXPORTER_OTLP_ENDPOINT: http,
      OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '300',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_METRICS_COMPRESSION: 'none',
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20abc,x-a=1',
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'x-a=2',
    });
    expect([traces?.timeoutMs, metrics?.timeoutMs]).toEqual([300, 2000]);
    expect([traces?.compression, metrics?.compression]).toEqual(['gzip', 'none']);
    expect(traces?.headers).toEqual({ authorization: 'Bearer abc', 'x-a': '1' });
    expect(metrics?.headers).toEqual({ authorization: 'Bearer abc', 'x-a': '2' });
  });

  it('sets the batches and the resource', () => {
    const read = settings({
      OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_BSP_EXPORT_TIMEOUT: '200',
      OTEL_BSP_MAX_QUEUE_SIZE: '300',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '30',
      OTEL_METRIC_EXPORT_TIMEOUT: '400',
      OTEL_SERVICE_NAME: 'mine',
      OTEL_RESOURCE_ATTRIBUTES: 'k8s.cluster.name=east,team=a%2Cb',
    });
    expect(read.batch).toEqual({
      scheduledDelayMs: 100,
      exportTimeoutMs: 200,
      maxQueueSize: 300,
      maxExportBatchSize: 30,
    });
    expect(read.metricTimeoutMs).toBe(400);
    expect(read.serviceName).toBe('mine');
    expect(read.resourceAttributes).toEqual({ 'k8s.cluster.name': 'east', team: 'a,b' });
  });

  it.each([
    ['OTEL_SDK_DISABLED', 'TRUE', false, false],
    ['OTEL_TRACES_EXPORTER', 'none', false, true],
    ['OTEL_METRICS_EXPORTER', 'none', true, false],
  ])('turns sending off: %s=%s', (name, value, traces, metrics) => {
    const read = settings({ OTEL_EXPORTER_OTLP_ENDPOINT: http, [name]: value });
    expect([read.traces !== undefined, read.metrics !== undefined]).toEqual([traces, metrics]);
  });

  it('takes an empty value for none', () => {
    const { settings: read, problems } = readOtelEnvironment(
      { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_BSP_MAX_QUEUE_SIZE: ' ', OTEL_SDK_DISABLED: '' },
      { ...config, endpoint: http },
    );
    expect(problems).toEqual([]);
    expect(read.traces?.url).toBe(http);
    expect(read.batch.maxQueueSize).toBe(2048);
  });

  it.each([
    ['OTEL_SDK_DISABLED', 'yes', 'true or false'],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'otlp or none'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'http/json', 'grpc or http/protobuf'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', 'http://HOST:PORT or https://HOST:PORT'],
    ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', '-1', 'a whole number above 0'],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'zstd', 'none or gzip'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', 'many', 'a whole number above 0'],
  ])('reports %s=%s, and the default holds', (name, value, expected) => {
    const { problems } = readOtelEnvironment({ [name]: value }, config);
    expect(problems).toContainEqual({ name, value, expected });
  });

  it.each(['secret', 'bad header=secret', 'x-a-bin=secret', 'x=%00secret'])(
    'reports headers that cannot be sent without repeating them: %s',
    (value) => {
      const { settings: read, problems } = readOtelEnvironment(
        { OTEL_EXPORTER_OTLP_HEADERS: value },
        { ...config, endpoint: http },
      );
      expect(JSON.stringify(problems)).not.toContain('secret');
      expect(problems).toContainEqual(
        expect.objectContaining({ name: 'OTEL_EXPORTER_OTLP_HEADERS', value: undefined }),
      );
      expect(read.traces?.headers).toEqual({});
    },
  );
});
