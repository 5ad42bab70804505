import { parseKeyPairsIntoRecord } from '@opentelemetry/core';

export type OtlpProtocol = 'grpc' | 'http/protobuf';
type Signal = 'traces' | 'metrics';

/** Where one signal is sent. */
export interface OtlpTarget {
  protocol: OtlpProtocol;
  /** Whole, with the path of the signal for `http/protobuf`. */
  url: string;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  compression: 'none' | 'gzip';
}

/** What `OTEL_*` and the config say together. */
export interface OtelSettings {
  /** `undefined`: not sent. */
  traces: OtlpTarget | undefined;
  metrics: OtlpTarget | undefined;
  metricIntervalMs: number;
  metricTimeoutMs: number;
  batch: { maxQueueSize: number; maxExportBatchSize: number; scheduledDelayMs: number; exportTimeoutMs: number };
  /** Of Sidelight itself; `undefined`: `sidelight`. */
  serviceName: string | undefined;
  resourceAttributes: Readonly<Record<string, string>>;
}

/** A variable whose value is not allowed; the default holds instead. Values of headers are never repeated. */
export interface EnvironmentProblem {
  name: string;
  value: string | undefined;
  expected: string;
}

/** From the config file. A variable that is set goes before it. */
export interface OtlpConfig {
  /** Base URL of both signals; `undefined`: nothing is sent, unless a variable says where. */
  endpoint: string | undefined;
  /** Of that endpoint; not of one that a variable names. */
  protocol: OtlpProtocol;
  /** Between two exports of metrics, ms. */
  intervalMs: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where receivers take gRPC; any other port takes `http/protobuf`, OpenTelemetry's default. */
const grpcPort = '4317';

/** Reads the `OTEL_*` variables that are obeyed: docs/reference/environment.md. Never throws. */
export function readOtelEnvironment(
  env: Environment,
  config: OtlpConfig,
): { settings: OtelSettings; problems: EnvironmentProblem[] } {
  const read = new EnvironmentReader(env);
  const enabled = !read.flag('OTEL_SDK_DISABLED');
  const settings: OtelSettings = {
    traces: enabled && exporterIsOtlp(read, 'TRACES') ? targetOf(read, 'traces', config) : undefined,
    metrics: enabled && exporterIsOtlp(read, 'METRICS') ? targetOf(read, 'metrics', config) : undefined,
    metricIntervalMs: read.positive('OTEL_METRIC_EXPORT_INTERVAL') ?? config.intervalMs,
    metricTimeoutMs: read.positive('OTEL_METRIC_EXPORT_TIMEOUT') ?? 30_000,
    batch: {
      maxQueueSize: read.positive('OTEL_BSP_MAX_QUEUE_SIZE') ?? 2048,
      maxExportBatchSize: read.positive('OTEL_BSP_MAX_EXPORT_BATCH_SIZE') ?? 512,
      scheduledDelayMs: read.positive('OTEL_BSP_SCHEDULE_DELAY') ?? 5000,
      exportTimeoutMs: read.positive('OTEL_BSP_EXPORT_TIMEOUT') ?? 30_000,
    },
    serviceName: read.text('OTEL_SERVICE_NAME'),
    resourceAttributes: parseKeyPairsIntoRecord(read.text('OTEL_RESOURCE_ATTRIBUTES')),
  };
  return { settings, problems: read.problems };
}

class EnvironmentReader {
  readonly #env: Environment;
  readonly problems: EnvironmentProblem[] = [];

  constructor(env: Environment) {
    this.#env = env;
  }

  /** An empty value is no value: OpenTelemetry's rule. */
  text(name: string): string | undefined {
    const value = this.#env[name]?.trim();
    return value === '' ? undefined : value;
  }

  /** The signal's own variable, else the general one. */
  nameOf(signal: Signal, what: string): string {
    const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${what}`;
    return this.text(own) === undefined ? `OTEL_EXPORTER_OTLP_${what}` : own;
  }

  flag(name: string): boolean {
    return this.oneOf(name, ['true', 'false'], (value) => value.toLowerCase()) === 'true';
  }

  positive(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (Number.isInteger(number) && number > 0) return number;
    return this.refuse(name, value, 'a whole number above 0');
  }

  oneOf<T extends string>(
    name: string,
    allowed: readonly T[],
    normal: (value: string) => string = (value) => value,
  ): T | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    return allowed.find((one) => one === normal(value)) ?? this.refuse(name, value, allowed.join(' or '));
  }

  refuse(name: string, value: string | undefined, expected: string): undefined {
    this.problems.push({ name, value, expected });
    return undefined;
  }
}

function exporterIsOtlp(read: EnvironmentReader, signal: 'TRACES' | 'METRICS'): boolean {
  return (read.oneOf(`OTEL_${signal}_EXPORTER`, ['otlp', 'none']) ?? 'otlp') === 'otlp';
}

function targetOf(read: EnvironmentReader, signal: Signal, config: OtlpConfig): OtlpTarget | undefined {
  const chosen = read.oneOf<OtlpProtocol>(read.nameOf(signal, 'PROTOCOL'), ['grpc', 'http/protobuf']);
  const rest = {
    headers: headersOf(read, signal),
    timeoutMs: read.positive(read.nameOf(signal, 'TIMEOUT')) ?? 10_000,
    compression: read.oneOf(read.nameOf(signal, 'COMPRESSION'), ['none', 'gzip'] as const) ?? 'none',
  };
  const name = read.nameOf(signal, 'ENDPOINT');
  const named = read.text(name);
  const endpoint = named ?? config.endpoint;
  if (endpoint === undefined) return undefined;
  const parsed = URL.parse(endpoint);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    return read.refuse(name, endpoint, 'http://HOST:PORT or https://HOST:PORT');
  const usual = parsed.port === grpcPort ? 'grpc' : 'http/protobuf';
  const protocol = chosen ?? (named === undefined ? config.protocol : usual);
  const isWhole = named !== undefined && name !== 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const url = protocol === 'grpc' || isWhole ? endpoint : `${endpoint.replace(/\/$/, '')}/v1/${signal}`;
  return { protocol, url, ...rest };
}

function headersOf(read: EnvironmentReader, signal: Signal): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of new Set(['OTEL_EXPORTER_OTLP_HEADERS', read.nameOf(signal, 'HEADERS')])) {
    const text = read.text(name);
    if (text === undefined) continue;
    const pairs = Object.entries(parseKeyPairsIntoRecord(text)).map(
      ([key, value]) => [key.toLowerCase(), value] as const,
    );
    if (pairs.length === 0 || !pairs.every(isHeader)) read.refuse(name, undefined, 'key=value, with commas between');
    else Object.assign(headers, Object.fromEntries(pairs));
  }
  return headers;
}

/** What both gRPC and HTTP take; a `-bin` key would need bytes. */
function isHeader([key, value]: readonly [string, string]): boolean {
  return /^[0-9a-z_.-]+$/.test(key) && !key.endsWith('-bin') && /^[ -~]*$/.test(value);
}
