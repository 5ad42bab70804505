import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { findEnvoy } from '../../setup/envoy.mjs';
import type { ConfigInput } from '../../src/config/schema.ts';
import { behaviourFromPath, type Handler, type UpstreamRequest } from '../../src/lab/behaviour.ts';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import {
  type Bootstrap,
  duration,
  type FilterConfig,
  type Json,
  type LabConfigOptions,
  labConfig,
  type ShippedConfig,
} from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import type { LoadClient } from '../../src/lab/load.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { type OtlpReceiver, startOtlpReceiver } from './otlp-receiver.ts';
import { startTestSidelight, type TestSidelight } from './sidelight.ts';
import { until } from './until.ts';

/** What Envoy's own access log says of a request, beside what Sidelight says. `null`: Envoy had nothing to print. */
export interface LogLine {
  path: string;
  code: number;
  /** As Envoy counts them. */
  attempts: number;
  connectionId: number;
  upstream: string | null;
  key: string | null;
  /** All of our dynamic metadata, with its types. */
  sidelight: Record<string, unknown> | null;
}

const logFormat: Record<keyof LogLine, string> = {
  path: '%REQ(:path)%',
  code: '%RESPONSE_CODE%',
  attempts: '%UPSTREAM_REQUEST_ATTEMPT_COUNT%',
  connectionId: '%UPSTREAM_CONNECTION_ID%',
  upstream: '%UPSTREAM_REMOTE_ADDRESS%',
  key: '%REQ(x-sidelight-key)%',
  sidelight: '%DYNAMIC_METADATA(sidelight)%',
};

export interface LoggingEnvoy extends EnvoyProcess {
  /** The lines of Envoy's own access log, by the requests' ends; waits until there are `count`. */
  lines(count: number): Promise<LogLine[]>;
}

export interface LoggingEnvoyOptions extends LabConfigOptions {
  /** Changes what `labConfig` made. */
  adapt?: ((hcm: FilterConfig, config: Bootstrap) => void) | undefined;
  /** Of ext_proc. 5,000 by default: a loaded machine may take longer than the shipped 200. */
  messageTimeoutMs?: number;
  /** False: nobody serves, so do not wait until Envoy finds the service healthy. */
  served?: boolean;
}

/** An Envoy on a shipped config, of the workload `name`, with an access log of its own beside ours. */
export async function startLoggingEnvoy(
  cleanup: Cleanup,
  name: string,
  { adapt, messageTimeoutMs = 5000, served = true, ...options }: LoggingEnvoyOptions,
): Promise<LoggingEnvoy> {
  const file = path.join(cleanup.use(tempDir()).path, 'access.log');
  const config = labConfig(options);
  config['node'] = { id: `${name}-1`, cluster: name };
  const hcm = connectionManager(config);
  const ownLog = {
    name: 'envoy.access_loggers.file',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
      path: file,
      log_format: { json_format: logFormat },
    },
  };
  if (options.base !== 'observe') extProc(hcm)['message_timeout'] = duration(messageTimeoutMs);
  hcm.access_log = [...(hcm.access_log ?? []), ownLog as never];
  adapt?.(hcm, config);
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  if (served) await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === 1);
  return {
    ...envoy,
    async lines(count) {
      const read = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []);
      await until(`${count} lines in Envoy's own log`, () => read().length >= count);
      return read().map((line) => JSON.parse(line) as LogLine);
    },
  };
}

function connectionManager(config: Bootstrap): FilterConfig {
  const filters = config.static_resources.listeners.flatMap(({ filter_chains }) => filter_chains[0]?.filters ?? []);
  const found = filters.find(({ typed_config }) => typed_config.http_filters !== undefined);
  if (found === undefined) throw new Error('no HTTP connection manager');
  return found.typed_config;
}

/** The config of our ext_proc filter. */
export function extProc(hcm: FilterConfig): Json {
  const filter = hcm.http_filters?.find(({ name }) => name === 'envoy.filters.http.ext_proc.sidelight');
  if (filter === undefined) throw new Error('no ext_proc filter');
  return filter.typed_config;
}

export interface Scene {
  envoy: LoggingEnvoy;
  upstreams: Upstreams;
  /** Every request that reached an upstream. */
  arrived: readonly UpstreamRequest[];
  /** HTTP/1.1 over one connection. */
  client: LoadClient;
  sidelight: TestSidelight;
  otlp: OtlpReceiver;
}

export interface SceneOptions {
  /** Of the Envoy's workload, thus the `service.name` of its spans. */
  name: string;
  base: ShippedConfig;
  config?: ConfigInput;
  handler?: Handler;
  http2Upstream?: boolean;
  /** Besides `app`, which is one upstream on 127.0.0.11, and `otlp`, which is the receiver. */
  clusters?: LabConfigOptions['clusters'];
  routes?: LabConfigOptions['routes'];
  inject?: boolean;
  runtime?: Json;
  adapt?: (hcm: FilterConfig, config: Bootstrap) => void;
}

/** The whole service with an OTLP receiver behind it, an upstream, and an Envoy between. */
export async function startScene(cleanup: Cleanup, options: SceneOptions): Promise<Scene> {
  const otlp = cleanup.use(await startOtlpReceiver());
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: otlp.endpoint }, ...options.config }));
  const { handler = behaviourFromPath, http2Upstream = false, adapt } = options;
  const arrived: UpstreamRequest[] = [];
  const keeping: Handler = (request) => {
    arrived.push(request);
    return handler(request);
  };
  const protocol = http2Upstream ? 'http2' : 'http1';
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11'], protocol, handler: keeping }));
  const envoy = await startLoggingEnvoy(cleanup, options.name, {
    base: options.base,
    sidelightPort: sidelight.grpcPort,
    clusters: [
      staticCluster(upstreams.addresses, { name: 'app', http2: http2Upstream }),
      staticCluster([new URL(otlp.endpoint).host], { name: 'otlp', http2: true }),
      ...(options.clusters ?? []),
    ],
    ...(options.routes === undefined ? {} : { routes: options.routes }),
    inject: options.inject ?? false,
    runtime: options.runtime ?? {},
    adapt,
  });
  const client = cleanup.use(http1Client(envoy.port('http')));
  return { envoy, upstreams, arrived, client, sidelight, otlp };
}
