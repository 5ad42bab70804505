import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { startAlertmanager } from '../../src/lab/alertmanager.ts';
import { startBackend } from '../../src/lab/backend.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { startPrometheus } from '../../src/lab/prometheus.ts';
import { needPart } from '../support/part.ts';
import { until } from '../support/until.ts';

/* The starters of real backends that the tests of alerts and the demo use. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

/** A target whose one metric is what the test says; its `host:port`. */
async function startTarget(value: () => number): Promise<string> {
  const server = createServer((_, response) => response.end(`temperature ${value()}\n`));
  cleanup.defer(() => server.close());
  cleanup.defer(() => server.closeAllConnections());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('an alert of a scraped target fires in Alertmanager, and is gone when it is over', async (context) => {
  const bins = [needPart(context, 'PROMETHEUS_BIN'), needPart(context, 'ALERTMANAGER_BIN')] as const;
  const alertmanager = cleanup.use(await startAlertmanager({ bin: bins[1] }));
  let temperature = 90;
  const target = await startTarget(() => temperature);
  const rule = { alert: 'Hot', expr: 'temperature > 80', annotations: { summary: '{{ $value }} degrees' } };
  const prometheus = cleanup.use(
    await startPrometheus({
      bin: bins[0],
      scrapes: [{ job: 'oven', targets: [target] }],
      rules: { 'alerts.yaml': JSON.stringify({ groups: [{ name: 'oven', rules: [rule] }] }) },
      alertmanagers: [alertmanager.address],
      intervalMs: 500,
    }),
  );
  await until('the alert', async () => (await alertmanager.firing()).length === 1);
  expect(await alertmanager.firing()).toMatchObject([
    { labels: { alertname: 'Hot', job: 'oven', instance: target }, annotations: { summary: '90 degrees' } },
  ]);
  expect(await prometheus.alerts()).toMatchObject([{ state: 'firing', labels: { alertname: 'Hot' } }]);
  expect(await prometheus.query('temperature * 2')).toEqual([
    { labels: { job: 'oven', instance: target }, value: 180 },
  ]);
  await expect(prometheus.query('temperature *')).rejects.toThrow('parse error');
  temperature = 20;
  await until('its end', async () => (await alertmanager.firing()).length === 0);
  expect(await prometheus.alerts()).toEqual([]);
});

it('one that ends at once is told in its own words', async () => {
  const options = { name: 'Node', bin: process.execPath, files: {}, readyPath: '/' };
  const started = startBackend({ ...options, args: () => ['--eval', 'throw new Error("no disk")'] });
  await expect(started).rejects.toThrow(/^Node did not come up: it ended with exit code 1\n[^]*no disk/);
});
