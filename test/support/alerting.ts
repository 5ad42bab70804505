import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { TestContext } from 'vitest';
import { type FiringAlert, startAlertmanager } from '../../src/lab/alertmanager.ts';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import { startPrometheus } from '../../src/lab/prometheus.ts';
import { buildRules } from '../../src/monitoring/build.ts';
import { renderRules } from '../../src/monitoring/render.ts';
import { needPart } from './part.ts';
import { until } from './until.ts';

/** An hour of the rules is two minutes here, their five minutes ten seconds. */
const timeScale = 1 / 30;

/** What is waited for takes as long as windows, and Prometheus may miss its time on a loaded machine. */
const patientMs = 120_000;

/** What Alertmanager posted of one alert. */
interface Notice {
  status: 'firing' | 'resolved';
  labels: Record<string, string>;
}

/** The shipped rules, only quicker, in a real Prometheus with a real Alertmanager. `jaeger`: its page, for the links. */
export async function startAlerting(context: TestContext, cleanup: Cleanup, sidelightUrl: string, jaeger = '') {
  const bins = [needPart(context, 'PROMETHEUS_BIN'), needPart(context, 'ALERTMANAGER_BIN')] as const;
  const notices: Notice[] = [];
  const webhookUrl = await startWebhook(cleanup, notices);
  const alertmanager = cleanup.use(await startAlertmanager({ bin: bins[1], webhookUrl }));
  const rules = buildRules({ timeScale, links: { jaeger } });
  const prometheus = cleanup.use(
    await startPrometheus({
      bin: bins[0],
      scrapes: [{ job: 'sidelight', targets: [new URL(sidelightUrl).host] }],
      rules: { 'rules.yaml': renderRules(rules, 'recording'), 'alerts.yaml': renderRules(rules, 'alerts') },
      alertmanagers: [alertmanager.address],
      intervalMs: 500,
    }),
  );
  const named = <T extends { labels: Record<string, string> }>(alerts: readonly T[], name: string) =>
    alerts.filter(({ labels }) => labels['alertname'] === name);
  return {
    prometheus,
    /** Waits until Prometheus has it pending, then until Alertmanager has it firing. */
    async fires(name: string): Promise<FiringAlert> {
      await until(`${name} pending`, async () => named(await prometheus.alerts(), name).length > 0, patientMs);
      let found: FiringAlert | undefined;
      await until(
        `${name} in Alertmanager`,
        async () => {
          found = named(await alertmanager.firing(), name)[0];
          return found !== undefined;
        },
        patientMs,
      );
      if (found === undefined) throw new Error('it was there a moment ago');
      return found;
    },
    /** Waits until Alertmanager has told that it is over. */
    async ends(name: string): Promise<void> {
      const isOver = () => named(notices, name).at(-1)?.status === 'resolved';
      await until(`the end of ${name}`, isOver, patientMs);
    },
    /** The names of those that fire now. */
    firing: async () => (await alertmanager.firing()).map(({ labels }) => labels['alertname']),
  };
}

async function startWebhook(cleanup: Cleanup, notices: Notice[]): Promise<string> {
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const { alerts } = (await json(request)) as { alerts: Notice[] };
    notices.push(...alerts);
    response.end();
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanup.defer(() => server.close());
  cleanup.defer(() => server.closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
