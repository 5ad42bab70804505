import { type Backend, startBackend } from './backend.ts';

export interface AlertmanagerOptions {
  /** Path of the binary. */
  bin: string;
  /** Where it posts what fires and what is resolved; absent: nowhere. */
  webhookUrl?: string;
}

/** An alert that is firing. */
export interface FiringAlert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** ISO 8601. */
  startsAt: string;
}

export interface Alertmanager extends Backend {
  /** `host:port`, as Prometheus wants it. */
  address: string;
  /** Those that fire now; a resolved one is not among them. */
  firing(): Promise<FiringAlert[]>;
}

/** A real Alertmanager, alone, with no receiver but the webhook; up when this resolves. */
export async function startAlertmanager({ bin, webhookUrl }: AlertmanagerOptions): Promise<Alertmanager> {
  const webhooks = webhookUrl === undefined ? {} : { webhook_configs: [{ url: webhookUrl, send_resolved: true }] };
  const config = {
    route: { receiver: 'here', group_by: ['...'], group_wait: '100ms', group_interval: '1s', repeat_interval: '1h' },
    receivers: [{ name: 'here', ...webhooks }],
  };
  const backend = await startBackend({
    name: 'Alertmanager',
    bin,
    // JSON is YAML.
    files: { 'alertmanager.yml': JSON.stringify(config) },
    args: (address) => [
      '--config.file=alertmanager.yml',
      '--storage.path=data',
      `--web.listen-address=${address}`,
      // No other one to talk to: it would listen on all interfaces for them.
      '--cluster.listen-address=',
    ],
    readyPath: '/-/ready',
  });
  return {
    ...backend,
    address: backend.url.replace('http://', ''),
    async firing() {
      const answer = await fetch(`${backend.url}/api/v2/alerts`);
      return (await answer.json()) as FiringAlert[];
    },
  };
}
