import { type Backend, startBackend } from './backend.ts';

export interface PrometheusOptions {
  /** Path of the binary. */
  bin: string;
  /** What is scraped: each target is `host:port`, its path `/metrics`. */
  scrapes: readonly { job: string; targets: readonly string[] }[];
  /** Rule files: name → text. */
  rules?: Readonly<Record<string, string>>;
  /** Where alerts are sent: `host:port` each. */
  alertmanagers?: readonly string[];
  /** Between two scrapes, and between two evaluations of the rules, ms. */
  intervalMs: number;
}

/** One sample of an instant query. */
export interface QueriedSample {
  /** `__name__` is among them, where there is one. */
  labels: Record<string, string>;
  value: number;
}

/** An alert that is pending or firing. */
export interface PendingAlert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: 'pending' | 'firing';
}

export interface Prometheus extends Backend {
  /** Throws with Prometheus' own words where the query is none. */
  query(promql: string): Promise<QueriedSample[]>;
  alerts(): Promise<PendingAlert[]>;
}

/** A real Prometheus with its data in a folder that goes with it; up when this resolves. */
export async function startPrometheus({ bin, rules = {}, ...options }: PrometheusOptions): Promise<Prometheus> {
  const every = `${options.intervalMs}ms`;
  const config = {
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
    scrape_configs: options.scrapes.map(({ job, targets }) => ({ job_name: job, static_configs: [{ targets }] })),
    rule_files: Object.keys(rules),
    alerting: { alertmanagers: [{ static_configs: [{ targets: options.alertmanagers ?? [] }] }] },
  };
  const backend = await startBackend({
    name: 'Prometheus',
    bin,
    // JSON is YAML.
    files: { 'prometheus.yml': JSON.stringify(config), ...rules },
    args: (address) => [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=${address}`,
      // An alert is sent again so seldom by default that its end would be late.
      '--rules.alert.resend-delay=1s',
    ],
    readyPath: '/-/ready',
  });
  return {
    ...backend,
    async query(promql) {
      const { result } = (await ask(`${backend.url}/api/v1/query?query=${encodeURIComponent(promql)}`)) as {
        result: { metric: Record<string, string>; value: [number, string] }[];
      };
      return result.map(({ metric, value: [, text] }) => ({ labels: metric, value: Number(text) }));
    },
    async alerts() {
      const { alerts } = (await ask(`${backend.url}/api/v1/alerts`)) as { alerts: PendingAlert[] };
      return alerts;
    },
  };
}

async function ask(url: string): Promise<unknown> {
  const answer = (await (await fetch(url)).json()) as { status: string; data?: unknown; error?: string };
  if (answer.status !== 'success') throw new Error(`Prometheus: ${answer.error ?? 'no answer'}`);
  return answer.data;
}
