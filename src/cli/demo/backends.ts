import { type Alertmanager, startAlertmanager } from '../../lab/alertmanager.ts';
import type { Backend } from '../../lab/backend.ts';
import { type BackendName, backendPrograms, findBackend } from '../../lab/backend-binaries.ts';
import type { Cleanup } from '../../lab/cleanup.ts';
import { type Jaeger, startJaeger } from '../../lab/jaeger.ts';
import { type Prometheus, startPrometheus } from '../../lab/prometheus.ts';
import type { Say } from './report.ts';
import { demoRules } from './rules.ts';

/** Where the programs are; absent: not on this machine. */
export type BackendBins = Partial<Record<BackendName, string>>;

/** Finds them, and says of each that is missing how to get it. */
export function findBackends(env: NodeJS.ProcessEnv, say: Say): BackendBins {
  const bins: BackendBins = {};
  for (const name of Object.keys(backendPrograms) as BackendName[]) {
    const found = findBackend(name, env);
    const { variable, toGet } = backendPrograms[name];
    if (found === undefined)
      say(`No ${name}: set ${variable}, or put it on PATH. To get it: ${toGet}. The demo goes on without it.`);
    else bins[name] = found;
  }
  return bins;
}

/** What a stage with backends has besides; absent: its program is. */
export interface Backends {
  jaeger: Jaeger | undefined;
  prometheus: Prometheus | undefined;
  alertmanager: Alertmanager | undefined;
}

export async function startTraces(bins: BackendBins, cleanup: Cleanup, say: Say): Promise<Jaeger | undefined> {
  const { jaeger } = bins;
  return jaeger === undefined ? undefined : started(() => startJaeger(jaeger), cleanup, say);
}

/** Prometheus, which scrapes Sidelight (a URL) with the shipped rules in the demo's time, and Alertmanager. */
export async function startAlerting(
  bins: BackendBins,
  { sidelightUrl, jaegerUrl }: { sidelightUrl: string; jaegerUrl: string | undefined },
  cleanup: Cleanup,
  say: Say,
): Promise<Omit<Backends, 'jaeger'>> {
  const { alertmanager: alertmanagerBin, prometheus: bin } = bins;
  const alertmanager =
    alertmanagerBin && (await started(() => startAlertmanager({ bin: alertmanagerBin }), cleanup, say));
  const options = {
    scrapes: [{ job: 'sidelight', targets: [new URL(sidelightUrl).host] }],
    rules: demoRules(jaegerUrl),
    alertmanagers: alertmanager ? [alertmanager.address] : [],
    intervalMs: 500,
  };
  const prometheus = bin && (await started(() => startPrometheus({ bin, ...options }), cleanup, say));
  return { prometheus: prometheus || undefined, alertmanager: alertmanager || undefined };
}

/** Goes on without one that does not come up, and says so: the rest of the demo does not need it. */
async function started<T extends Backend>(start: () => Promise<T>, cleanup: Cleanup, say: Say): Promise<T | undefined> {
  try {
    return cleanup.use(await start());
  } catch (error) {
    say(`${error instanceof Error ? error.message.trimEnd() : String(error)}\nThe demo goes on without it.`);
    return undefined;
  }
}

/** Prints where they are. */
export function tellBackends({ jaeger, prometheus, alertmanager }: Backends, say: Say): void {
  if (jaeger !== undefined) say(`  Jaeger     ${jaeger.url}/search`);
  if (prometheus !== undefined) say(`  Prometheus ${prometheus.url}`);
  if (alertmanager !== undefined) say(`  Alertmanager ${alertmanager.url}`);
}
