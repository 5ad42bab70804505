import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { until } from './until.ts';

const shippedConfig = fileURLToPath(new URL('../../monitoring/collector/config.yaml', import.meta.url));

export interface Collector {
  /** Where it takes OTLP over gRPC, and over HTTP. */
  grpc: string;
  http: string;
  /** What Prometheus would scrape, in the format that has exemplars. */
  scrape(): Promise<string>;
}

/** The shipped config on a real Collector, its spans going to `jaeger` (a URL), decided upon after a second; up when this resolves. */
export async function startCollector(
  cleanup: Cleanup,
  bin: string,
  { jaeger, samplingPercentage }: { jaeger: string; samplingPercentage: number },
): Promise<Collector> {
  const [grpc, http, prometheus] = [await freePort(), await freePort(), await freePort()].map(
    (port) => `127.0.0.1:${port}`,
  );
  const env = {
    OTLP_GRPC_ENDPOINT: grpc,
    OTLP_HTTP_ENDPOINT: http,
    PROMETHEUS_ENDPOINT: prometheus,
    JAEGER_ENDPOINT: new URL(jaeger).host,
    DECISION_WAIT: '1s',
    SPAN_METRICS_INTERVAL: '1s',
    SAMPLING_PERCENTAGE: String(samplingPercentage),
  };
  const child = spawn(bin, ['--config', shippedConfig], { stdio: 'ignore', env: { ...process.env, ...env } });
  dieWithUs(child);
  cleanup.defer(() => child.kill('SIGKILL'));
  const accept = { accept: 'application/openmetrics-text; version=1.0.0' };
  const ask = () => fetch(`http://${prometheus}/metrics`, { headers: accept });
  await until('the Collector', async () => {
    if (child.exitCode !== null) throw new Error(`the Collector ended with ${child.exitCode}`);
    return (await ask().catch(() => undefined))?.ok === true;
  });
  return { grpc: `http://${grpc}`, http: `http://${http}`, scrape: async () => (await ask()).text() };
}
