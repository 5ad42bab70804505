import net from 'node:net';
import { Cleanup } from '../../lab/cleanup.ts';
import { findEnvoy } from '../../lab/envoy-binary.ts';
import { http1Client } from '../../lab/http1-client.ts';
import { drive } from '../../lab/load.ts';
import { type BackendBins, type Backends, findBackends, startAlerting, startTraces, tellBackends } from './backends.ts';
import { type Say, summarize, tell } from './report.ts';
import type { Scenario } from './scenario.ts';
import { alertScenario } from './scenarios/alert.ts';
import { a1, pinnedThenCleared } from './scenarios/flip.ts';
import { b1, b2 } from './scenarios/masked.ts';
import type { Program } from './sidelight-process.ts';
import { demoWorkload, type Stage, setStage } from './stage.ts';

export interface DemoOptions {
  program: Program;
  /** From `OTEL_EXPORTER_OTLP_ENDPOINT`; absent: 127.0.0.1:4317 if something listens there. */
  otlpEndpoint: string | undefined;
  /** Leaves everything running, with traffic, until the signal. */
  keep: boolean;
  /** Starts Jaeger, Prometheus and Alertmanager too, where they are, and plays the alert. */
  backends: boolean;
  /** Names them, or has them on its PATH. */
  env: NodeJS.ProcessEnv;
  colour: boolean;
  say: Say;
  /** Ctrl-C. */
  signal: AbortSignal;
}

const defaultOtlp = { host: '127.0.0.1', port: 4317, url: 'http://127.0.0.1:4317' };

/** Whether every scenario came out as it must, or the user had enough. */
export type DemoEnd = 'met' | 'not_met' | 'interrupted';

/** Plays the five scenarios on a real Envoy, and the alert where there is a Prometheus. Leaves no process behind, however it ends. */
export async function runDemo(options: DemoOptions): Promise<DemoEnd> {
  const { say, signal } = options;
  const envoy = findEnvoy();
  const bins = options.backends ? findBackends(options.env, say) : {};
  say(
    `A real Envoy ${envoy.version} with envoy/full.yaml, upstreams on 127.0.0.11-13, a private DNS server, and Sidelight.`,
  );
  const cleanup = new Cleanup();
  try {
    const set = await setUp(options, bins, envoy.path, cleanup);
    const end = await Promise.race([playAll(set, options), interruption(signal)]);
    if (end === 'interrupted') return end;
    tellTraces(set, say);
    if (options.keep) await keepRunning(set, say, signal);
    return end;
  } finally {
    await cleanup.run();
  }
}

interface SetUp {
  stage: Stage;
  backends: Backends;
  /** Where the spans go; absent: nowhere. */
  otlpEndpoint: string | undefined;
}

async function setUp(options: DemoOptions, bins: BackendBins, envoyBin: string, cleanup: Cleanup): Promise<SetUp> {
  const { program, say } = options;
  // Who says where the spans are to go has a Jaeger.
  const jaeger = options.otlpEndpoint === undefined ? await startTraces(bins, cleanup, say) : undefined;
  const listening = jaeger?.grpc ?? ((await listens(defaultOtlp)) ? defaultOtlp.url : undefined);
  const otlpEndpoint = options.otlpEndpoint ?? listening;
  const stage = await setStage({ envoyBin, program, otlpEndpoint }, cleanup);
  const places = { sidelightUrl: stage.sidelight.httpUrl, jaegerUrl: jaeger?.url };
  return { stage, backends: { jaeger, ...(await startAlerting(bins, places, cleanup, say)) }, otlpEndpoint };
}

function scenariosFor({ prometheus, ...backends }: Backends): Scenario[] {
  const alerts = prometheus === undefined ? [] : [alertScenario({ prometheus, ...backends })];
  return [a1, ...pinnedThenCleared(), b1, b2, ...alerts];
}

async function playAll({ stage, backends }: SetUp, { say, colour }: DemoOptions): Promise<DemoEnd> {
  const played = [];
  for (const scenario of scenariosFor(backends)) {
    say(`\n${scenario.id}  ${scenario.title}`);
    const finding = await scenario.play(stage);
    tell(finding, say, colour);
    played.push({ scenario, finding });
  }
  const met = summarize(played, say);
  say(met ? '\nEvery shape was met.' : '\nNot every shape was met: see the lines NOT MET above.');
  return met ? 'met' : 'not_met';
}

function tellTraces({ otlpEndpoint, backends: { jaeger } }: SetUp, say: Say): void {
  if (otlpEndpoint === undefined) {
    say('Spans went nowhere: with Jaeger (or any OTLP receiver) on 127.0.0.1:4317 they would be there.');
    return;
  }
  const page = jaeger?.url ?? 'http://127.0.0.1:16686';
  say(`Spans went to ${otlpEndpoint}. In Jaeger (${page}) choose service "${demoWorkload}" and search`);
  say('for the tags sidelight.outcome=masked or sidelight.pin=stale; more searches are in docs/traces.md.');
}

/** Traffic over the masked and the current cluster, until Ctrl-C. */
async function keepRunning({ stage, backends }: SetUp, say: Say, signal: AbortSignal): Promise<void> {
  say('\nStill running, with traffic, until Ctrl-C:');
  say(`  Envoy      http://127.0.0.1:${stage.port}/b1  (also /b2, /a1, /a3)`);
  say(`  its admin  http://127.0.0.1:${stage.envoy.admin.port}/clusters`);
  say(`  Sidelight  ${stage.sidelight.httpUrl}/metrics  ${stage.sidelight.httpUrl}/api/v1/exchanges`);
  tellBackends(backends, say);
  say(`\nThe page:    ${stage.sidelight.httpUrl}/`);
  const client = http1Client(stage.port, 4);
  const paths = ['/b1', '/a1', '/a3'];
  let turn = 0;
  await drive(() => client.request(paths[turn++ % paths.length] ?? '/b1'), { concurrency: 2, pauseMs: 50, signal });
  client.close();
}

function interruption(signal: AbortSignal): Promise<'interrupted'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('interrupted');
    signal.addEventListener('abort', () => resolve('interrupted'), { once: true });
  });
}

async function listens(address: { host: string; port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(address);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
