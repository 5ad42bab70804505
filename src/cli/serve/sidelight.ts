import { randomUUID } from 'node:crypto';
import { type Admin, startAdmin } from '../../admin/server.ts';
import { createClusterRules } from '../../config/cluster-rules.ts';
import type { Config } from '../../config/schema.ts';
import type { Discovery } from '../../discovery/discovery.ts';
import { createEmit, type Emit } from '../../emit/create-emit.ts';
import { unusedEndpoints } from '../../endpoints/report.ts';
import { Coverage } from '../../flow/coverage.ts';
import type { Recorder } from '../../flow/recorder.ts';
import type { Ingress } from '../../ingress/server.ts';
import { parseHostPort } from '../../lib/host-port.ts';
import type { Logger } from '../../lib/logger.ts';
import { clustersView, pinsView, reportersView } from './api-views.ts';
import { auditPins, type Books, openBooks, reportEndpoints, windowMs } from './books.ts';
import { LagMeter } from './lag-meter.ts';
import { buildDiscovery, buildIngress, buildRecorder, type Ground, pinGauges } from './rooms.ts';

export interface SidelightOptions {
  config: Config;
  version: string;
  /** The process's environment; only `OTEL_*` is read. */
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
  /** Epoch ms. */
  now: () => number;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
}

/** A running service. */
export interface Sidelight {
  grpcPort: number;
  httpPort: number;
  /** Where spans are sent, for a start-up line. */
  spansTo: string;
  /** Stops in order: no new streams, what is open judged, telemetry flushed. Takes `shutdownMs` at most. */
  close(): Promise<void>;
}

/** How often what lingers is closed, ms. */
const beatMs = 250;
/** A proxy that only tags no longer counts as reporting after so long without a request, ms. */
const reporterQuietMs = 60_000;
/** How often pins are judged although no entry tells of them, ms. */
const auditMs = 1000;
/** Rows of one answer about endpoints. */
const maxEndpointRows = 1000;

interface Rooms {
  discovery: Discovery;
  emit: Emit;
  recorder: Recorder;
  coverage: Coverage;
  books: Books;
  ingress: Ingress;
  lag: LagMeter;
  beats: readonly NodeJS.Timeout[];
}

/** Builds every room, joins them, and listens. Rejects with `listen_failed`. */
export async function startSidelight(options: SidelightOptions): Promise<Sidelight> {
  const { config } = options;
  const rooms = buildRooms(options);
  const state = { serving: false };
  let admin: Admin | undefined;
  try {
    await rooms.discovery.start();
    admin = await openAdmin(options, rooms, state);
    const grpcPort = await rooms.ingress.bind(config.listen.grpc);
    state.serving = true;
    rooms.ingress.setServing(true);
    return {
      grpcPort,
      httpPort: admin.port,
      spansTo: rooms.emit.settings.traces?.url ?? 'nowhere',
      close: () => {
        state.serving = false;
        return stop(rooms, admin, config.shutdownMs);
      },
    };
  } catch (error) {
    await stop(rooms, admin, 0);
    throw error;
  }
}

function buildRooms(options: SidelightOptions): Rooms {
  const { config, logger, now } = options;
  const ground: Ground = { ...options, rules: createClusterRules(config) };
  const lag = new LagMeter();
  const discovery = buildDiscovery(ground, {
    restored: [],
    onChange: (change) => books.flips.changed(change, recorder.connections()),
  });
  const coverage = new Coverage(config.limits.reporters);
  const emit = createEmit({
    limits: config.limits,
    resource: { version: options.version, instanceId: randomUUID() },
    otlp: { ...config.otlp, endpoint: config.otlp.endpoint },
    env: options.env,
    now,
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
      unused: () => unusedEndpoints(books.activity.uses(now()), discovery.snapshot()),
      eventLoopLagMs: () => lag.takeMs(),
    },
    isPinExpected: (cluster) => ground.rules(cluster ?? '').expectPin,
    onExportFailure: (failure) => logger.warn('otlp.export_failed', { ...failure }),
  });
  for (const problem of emit.problems) logger.warn('environment.ignored', { ...problem });
  const books = openBooks(ground, emit);
  const recorder = buildRecorder(ground, { discovery, emit, books, coverage });
  const ingress = buildIngress(ground, { discovery, emit, recorder, coverage });
  const beats = [
    setInterval(() => recorder.advance(), beatMs),
    setInterval(() => auditPins(books, recorder, now()), auditMs),
  ];
  return { discovery, emit, recorder, coverage, books, ingress, lag, beats };
}

async function openAdmin(
  { config, logger, now }: SidelightOptions,
  { discovery, emit, recorder, coverage, books }: Rooms,
  state: { serving: boolean },
): Promise<Admin> {
  const rules = createClusterRules(config);
  const startedMs = now();
  const { host, port } = parseHostPort(config.listen.http) ?? { host: '127.0.0.1', port: 0 };
  return startAdmin({
    host,
    port,
    sources: {
      ready: () => ({ ready: state.serving, reasons: state.serving ? [] : ['not serving: starting or shutting down'] }),
      metrics: () => emit.scrape(),
      exchanges: (query) => ({ nowMs: now(), exchanges: emit.recent(query) }),
      pins: () => pinsView(recorder.board(), books.lives.cleared(), now()),
      endpoints(query) {
        const from = { recorder, view: discovery.snapshot(), coverage, rules, nowMs: now() };
        const endpoints = reportEndpoints(books, from, query);
        return {
          nowMs: from.nowMs,
          startedMs,
          windowMs,
          truncated: endpoints.length > maxEndpointRows,
          endpoints: endpoints.slice(0, maxEndpointRows),
        };
      },
      clusters: () => clustersView(discovery.snapshot(), (cluster) => books.flips.of(cluster), now()),
      reporters: () => reportersView(coverage.reporters(), now()),
    },
    onError: (error) => logger.error('http.failed', { error }),
  });
}

async function stop(rooms: Rooms, admin: Admin | undefined, withinMs: number): Promise<void> {
  const { ingress, recorder, discovery, emit, lag, beats } = rooms;
  await ingress.drain(withinMs / 2);
  for (const beat of beats) clearInterval(beat);
  recorder.flush();
  discovery.stop();
  await Promise.all([emit.shutdown(withinMs / 2), admin?.close(withinMs / 2)]);
  lag.stop();
}
