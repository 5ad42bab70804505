import type { Prometheus } from '../../../lab/prometheus.ts';
import type { Backends } from '../backends.ts';
import { check, type Finding, type Scenario } from '../scenario.ts';
import { makeFaulty, type Stage, untilTrue } from '../stage.ts';
import { keepSending } from '../traffic.ts';

/** Of `demoRules`. */
export const alertName = 'SidelightMaskedFailuresFast';
const cluster = 'al';
/** A rule waits for its window to fill and to empty, in the demo's time. */
const patienceMs = 60_000;

/** What the scenario needs, and what it asks too where it is there. */
type Alerting = Backends & { prometheus: Prometheus };

interface Told {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** Since the fault began; absent: it was not seen to be pending. */
  pendingMs: number | undefined;
  firingMs: number;
}

/** AL: a fault that no client sees is told to somebody, and its end too. */
export function alertScenario(backends: Alerting): Scenario {
  return {
    id: 'AL',
    title: 'One of two servers answers 503, retries hide it, and somebody is told',
    play: (stage) => playAlert(stage, backends),
  };
}

async function playAlert(stage: Stage, backends: Alerting): Promise<Finding> {
  makeFaulty(stage, true);
  const { client, stop } = keepSending(stage, cluster);
  const told = await untilTold(backends);
  const traces = await tracesBehind(told, backends);
  makeFaulty(stage, false);
  const resolvedMs = await timed(async () =>
    untilTrue('the end of the alert', async () => (await firing(backends)) === undefined, patienceMs),
  );
  await stop();
  const failed = client.log.filter((result) => !result.ok).length;
  const retries = await stage.envoy.admin.stat(`cluster.${cluster}.upstream_rq_retry_success`);
  const seen = `${client.log.length} requests, ${failed} failed`;
  return {
    client: `${seen}: nothing to see`,
    envoy: `upstream_rq_retry_success ${retries}`,
    sidelight: [...linesOf(told, traces, backends), `the server is repaired: resolved after ${seconds(resolvedMs)}`],
    brief: { client: seen, sidelight: `alert fired after ${seconds(told.firingMs)}, and was resolved` },
    trace: undefined,
    checks: [
      check('no request failed', failed === 0),
      check('the alert names the kind of the proxy that saw it', told.labels['sidelight_reporter_kind'] === 'envoy'),
      check('it has a runbook', told.annotations['runbook_url']?.endsWith(`${alertName}.md`) === true),
      check('its link leads to traces', traces?.length !== 0),
    ],
  };
}

function linesOf(told: Told, traces: string[] | undefined, { alertmanager }: Alerting): string[] {
  const { summary, description, runbook_url: runbook, traces_url: link } = told.annotations;
  const pending = told.pendingMs === undefined ? '' : `pending after ${seconds(told.pendingMs)}, `;
  const by = alertmanager === undefined ? 'Prometheus' : 'Alertmanager';
  return [
    `${alertName}: ${pending}firing in ${by} after ${seconds(told.firingMs)}; an hour of the shipped rules is half a minute here`,
    `${summary}`,
    `${description}`,
    `runbook ${runbook}`,
    ...(traces === undefined
      ? []
      : [`traces ${link}`, `there Jaeger shows ${traces.length} of them, such as ${traces[0]}`]),
  ];
}

async function untilTold(backends: Alerting): Promise<Told> {
  const began = performance.now();
  const since = () => performance.now() - began;
  let pendingMs: number | undefined;
  let told: Told | undefined;
  await untilTrue(
    `${alertName} to fire`,
    async () => {
      const waiting = (await backends.prometheus.alerts()).some((alert) => isOurs(alert) && alert.state === 'pending');
      if (waiting) pendingMs ??= since();
      const found = await firing(backends);
      if (found !== undefined) told = { ...found, pendingMs, firingMs: since() };
      return told !== undefined;
    },
    patienceMs,
  );
  if (told === undefined) throw new Error(`${alertName} did not fire`);
  return told;
}

/** The alert as Alertmanager has it, else Prometheus; absent: it does not fire. */
async function firing({
  prometheus,
  alertmanager,
}: Alerting): Promise<Pick<Told, 'labels' | 'annotations'> | undefined> {
  if (alertmanager !== undefined) return (await alertmanager.firing()).find(isOurs);
  return (await prometheus.alerts()).find((alert) => isOurs(alert) && alert.state === 'firing');
}

function isOurs({ labels }: { labels: Record<string, string> }): boolean {
  return labels['alertname'] === alertName && labels['sidelight_cluster'] === cluster;
}

/** The traces that Jaeger finds by the alert's link, waiting until there is one; absent: there is no Jaeger. */
async function tracesBehind({ annotations }: Told, { jaeger }: Alerting): Promise<string[] | undefined> {
  if (jaeger === undefined) return undefined;
  let found: string[] = [];
  // An alert may be faster than its spans: those are sent every five seconds.
  await untilTrue(
    'traces behind the link of the alert',
    async () => {
      // The page's query is the API's too.
      const answer = await fetch((annotations['traces_url'] ?? '').replace('/search?', '/api/traces?'));
      const { data } = (await answer.json()) as { data: { traceID: string }[] | null };
      found = (data ?? []).map(({ traceID }) => traceID);
      return found.length > 0;
    },
    patienceMs,
  );
  return found;
}

async function timed(wait: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await wait();
  return performance.now() - began;
}

/** `4.2 s`. */
function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
