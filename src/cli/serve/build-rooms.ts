import { randomUUID } from 'node:crypto';
import { createClusterRules } from '../../config/cluster-rules.ts';
import type { Config } from '../../config/schema.ts';
import type { Discovery } from '../../discovery/discovery.ts';
import type { ExpectedPods } from '../../discovery/kubernetes/expected-pods.ts';
import type { SavedSubject } from '../../discovery/saved.ts';
import { createEmit, type Emit } from '../../emit/create-emit.ts';
import { unusedEndpoints } from '../../endpoints/report.ts';
import { Coverage } from '../../flow/coverage.ts';
import type { Recorder } from '../../flow/recorder.ts';
import type { Ingress } from '../../ingress/server.ts';
import type { Logger } from '../../lib/logger.ts';
import { auditPins, type Books, openBooks } from './books.ts';
import { ClockWatch } from './clock-watch.ts';
import { LagMeter } from './lag-meter.ts';
import { buildDiscovery, buildExpected, buildIngress, buildRecorder, type Ground, pinGauges } from './rooms.ts';

export interface SidelightOptions {
  config: Config;
  version: string;
  /** The process's environment; only `OTEL_*` and, in a pod, `KUBERNETES_SERVICE_*` are read. */
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
  /** Epoch ms. */
  now: () => number;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
}

/** How often what lingers is closed, ms. */
const beatMs = 250;
/** How often pins are judged although no entry tells of them, ms. */
const auditMs = 1000;
/** A proxy that only tags no longer counts as reporting after so long without a request, ms. */
export const reporterQuietMs = 60_000;

/** Every room, joined to the others. */
export interface Rooms {
  ground: Ground;
  discovery: Discovery;
  emit: Emit;
  recorder: Recorder;
  coverage: Coverage;
  /** Absent: the config does not say who should report. */
  expected: ExpectedPods | undefined;
  books: Books;
  ingress: Ingress;
  lag: LagMeter;
  /** A meter of its own: to ask one is to begin anew, and the scrape asks `lag`. Absent without the page. */
  pageLag: LagMeter | undefined;
  /** Epoch ms, as the clock is now. */
  startedMs: () => number;
  /** Nothing is to be said about ages before this: the clock may have been set. */
  heedClock: () => void;
  beats: readonly NodeJS.Timeout[];
}

/** What comes from an earlier run, and who is told that there is something new to keep. */
export interface Memory {
  restored: readonly SavedSubject[];
  touch: () => void;
}

/** Builds every room and joins them; nothing listens yet. */
export function buildRooms(options: SidelightOptions, { restored, touch }: Memory): Rooms {
  const { config, logger, now } = options;
  const ground: Ground = { ...options, rules: createClusterRules(config) };
  const lag = new LagMeter();
  const pageLag = config.page.enabled ? new LagMeter() : undefined;
  const discovery = buildDiscovery(ground, {
    restored,
    onChange(change) {
      books.flips.changed(change, recorder.connections());
      touch();
    },
  });
  const expected = buildExpected(ground);
  const coverage = new Coverage(config.limits.reporters);
  const emit = createEmit({
    limits: config.limits,
    resource: { version: options.version, instanceId: randomUUID() },
    otlp: { ...config.otlp, endpoint: config.otlp.endpoint },
    env: options.env,
    now,
    tally: config.page.enabled,
    sampling: {
      ratio: config.traces.rootSampleRatio,
      keptPerSecond: config.traces.keepPerSecond,
      keptBurst: config.traces.keepBurst,
      slowMs: (cluster) => ground.rules(cluster ?? '').slowMs,
    },
    sources: {
      pins: () => pinGauges(recorder, ground.rules),
      discovery: () => discovery.snapshot(),
      coverage: () => coverage.summary(now(), reporterQuietMs),
      expected: () => expected?.count(),
      unused: () => unusedEndpoints(books.activity.uses(now()), discovery.snapshot()),
      eventLoopLagMs: () => lag.takeMs(),
    },
    isPinExpected: (cluster) => ground.rules(cluster ?? '').expectPin,
    onExportFailure: (failure) => logger.warn('otlp.export_failed', { ...failure }),
  });
  for (const problem of emit.problems) logger.warn('environment.ignored', { ...problem });
  const books = openBooks(ground, emit);
  const recorder = buildRecorder(ground, { discovery, emit, books, coverage });
  const ingress = buildIngress(ground, { recorder, coverage, discovery, emit, touch });
  const time = startBeats(ground, { recorder, books, discovery });
  return {
    ground,
    discovery,
    emit,
    recorder,
    coverage,
    expected,
    books,
    ingress,
    lag,
    pageLag,
    ...time,
  };
}

/** What happens without an entry, and when this process began by a clock that may be set meanwhile. */
function startBeats(
  { now, monotonicMs }: Ground,
  { recorder, books, discovery }: Pick<Rooms, 'recorder' | 'books' | 'discovery'>,
): Pick<Rooms, 'startedMs' | 'heedClock' | 'beats'> {
  const clock = new ClockWatch(now, monotonicMs);
  let startedMs = now();
  const heedClock = () => {
    const setMs = clock.takeSetMs();
    startedMs += setMs;
    if (setMs > 0) recorder.clockSetForward(setMs);
  };
  const beat = () => {
    heedClock();
    recorder.advance();
  };
  const audit = () => auditPins(books, recorder, { view: discovery.snapshot(), nowMs: now() });
  return {
    startedMs: () => startedMs,
    heedClock,
    beats: [setInterval(beat, beatMs), setInterval(audit, auditMs)],
  };
}
