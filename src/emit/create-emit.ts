import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import type { ClearedPin, PinEvent, PinLife } from '../model/pin-life.ts';
import type { TcpConnection } from '../model/tcp-connection.ts';
import type { AttemptVerdict, JudgedExchange } from '../model/verdict.ts';
import { type Collection, createCollector } from './metrics/collect.ts';
import { DomainMetrics, type PinnedUse, startAtZero } from './metrics/domain-metrics.ts';
import type { GaugeSources } from './metrics/gauges.ts';
import { createProducer } from './metrics/producer.ts';
import { type Scrape, scrapeOf } from './metrics/scrape.ts';
import { SelfMetrics } from './metrics/self-metrics.ts';
import { type SeriesLimits, SeriesTable } from './metrics/series-table.ts';
import {
  type Environment,
  type EnvironmentProblem,
  type OtelSettings,
  type OtlpConfig,
  readOtelEnvironment,
} from './otlp/environment.ts';
import { type ExportFailure, ExportFailures } from './otlp/export-failures.ts';
import { createMetricExporter, createSpanExporter } from './otlp/exporters.ts';
import { createMetricPush } from './otlp/metric-push.ts';
import { createTracePipeline, type TracePipeline } from './otlp/trace-pipeline.ts';
import type { IsPinExpected } from './pin-expected.ts';
import { type RecentExchange, RecentExchanges, type RecentQuery } from './recent.ts';
import type { Sampling } from './spans/span-writer.ts';
import type { TaggedResponse } from './tagged-response.ts';
import { ClusterTally } from './tally/cluster-tally.ts';

export interface EmitLimits extends Omit<SeriesLimits, 'idleMs'> {
  /** Exchanges that the API can list. */
  recentExchanges: number;
}

/** After this a label that nobody uses may give its place to another. */
const labelIdleMs = 10 * 60_000;
/** Workloads that have a tracer at once. */
const workloads = 1000;
/** Token buckets: 1 per cluster and outcome that was kept lately. */
const buckets = 10_000;
/** Stale pins whose span exchanges can link to. */
const maxPins = 10_000;
/** Clusters, once per reporter kind, whose last 15 minutes the page can draw: 11 kB each. */
const maxTallies = 1000;

export interface EmitSampling extends Omit<Sampling, 'kept' | 'isPinExpected'> {
  /** Exchanges kept although unsampled, per cluster and outcome. */
  keptPerSecond: number;
  keptBurst: number;
}

export interface EmitOptions {
  limits: EmitLimits;
  /** Sidelight's version, and this replica's id: `service.instance.id`, different for each. */
  resource: { version: string; instanceId: string };
  /** From the config; variables that are set go before it. */
  otlp: OtlpConfig;
  /** The process's environment; only `OTEL_*` is read. */
  env: Environment;
  /** Epoch ms. */
  now: () => number;
  sampling: EmitSampling;
  /** Whether to count for the page. Absent: no. */
  tally?: boolean;
  sources: Partial<GaugeSources>;
  isPinExpected: IsPinExpected;
  /** Already limited to one per signal and 30 s. */
  onExportFailure: (failure: ExportFailure) => void;
}

export interface Emit {
  /** Profiles `full` and `observe`: counts a judged exchange and writes its spans. */
  exchange: (judged: JudgedExchange) => void;
  /** Profile `tag` only: in any other the recorder says it, and better. */
  tagged: (tagged: TaggedResponse) => void;
  tcpEnd: (connection: TcpConnection, verdict: AttemptVerdict) => void;
  /** Requests and bytes over a connection whose endpoint left, HTTP and TCP. */
  pinUse: (use: PinnedUse) => void;
  /** Something happened in the life of a pin: counted; its spans, where it becomes stale and where that ends. */
  pinEvent: (event: PinEvent, life: PinLife | ClearedPin) => void;
  self: SelfMetrics;
  recent: (query: RecentQuery) => RecentExchange[];
  /** What the page shows of each cluster; `undefined`: there is no page, so nothing is counted for it. */
  tally: ClusterTally | undefined;
  /** What `/metrics` answers. */
  scrape: () => Scrape;
  /** Where telemetry goes, for a start-up line; and variables that were not understood. */
  settings: OtelSettings;
  problems: readonly EnvironmentProblem[];
  /** Sends what waits, for at most so long, and stops. Never rejects. */
  shutdown: (withinMs: number) => Promise<void>;
}

/** All that leaves Sidelight: metrics on the scrape and over OTLP, spans over OTLP. No network use without an endpoint. */
export function createEmit(options: EmitOptions): Emit {
  const { limits, now, isPinExpected } = options;
  const { settings, problems } = readOtelEnvironment(options.env, options.otlp);
  const self = new SelfMetrics(now);
  const table = new SeriesTable(
    { ...limits, idleMs: labelIdleMs },
    {
      onOverflow: (label) => self.labelOverflow(label),
      onNewCluster: (scope, nowMs) => startAtZero(scope, nowMs, isPinExpected),
    },
  );
  const metrics = new DomainMetrics(table, isPinExpected);
  const recent = new RecentExchanges(limits.recentExchanges);
  const tally = options.tally === true ? new ClusterTally(Math.min(maxTallies, limits.clusters)) : undefined;
  const failures = new ExportFailures(options.onExportFailure, now);
  const collect = createCollector({ table, self, sources: options.sources, now });
  const resource = ownResource(options.resource, settings);
  const meters = startMeters(options.resource.version, settings, resource, { collect, self, failures });
  const traces = startTraces(options, settings, { self, failures });
  let stopping: Promise<void> | undefined;

  return {
    self,
    settings,
    problems,
    tally,
    exchange(judged) {
      const nowMs = now();
      metrics.exchange(judged, nowMs);
      tally?.exchange(judged, nowMs);
      if (judged.exchange.incomplete !== undefined) self.incomplete(judged.exchange.incomplete);
      recent.add(judged, traces?.writer.exchange(judged, nowMs), nowMs);
    },
    tagged(tagged) {
      const nowMs = now();
      metrics.tagged(tagged, nowMs);
      tally?.tagged(tagged, nowMs);
      self.incomplete('profile_tag');
      traces?.writer.tagged(tagged, nowMs);
    },
    tcpEnd: (connection, verdict) => metrics.tcpEnd(connection, verdict, now()),
    pinUse: (use) => metrics.pinUse(use, now()),
    pinEvent(event, life) {
      const nowMs = now();
      metrics.pinEvent(event, life, nowMs);
      traces?.pins.event(event, life, nowMs);
    },
    recent: (query) => recent.list(query),
    scrape: () => scrapeOf(collect(), resource.attributes),
    shutdown(withinMs) {
      const senders = [traces?.processor, meters].filter((sender) => sender !== undefined);
      stopping ??= withinTime(
        withinMs,
        senders.map((sender) => sender.shutdown()),
      );
      return stopping;
    },
  };
}

interface Counts {
  self: SelfMetrics;
  failures: ExportFailures;
}

/** The push of metrics, if they are sent anywhere. */
function startMeters(
  version: string,
  settings: OtelSettings,
  resource: Resource,
  { collect, self, failures }: Counts & { collect: () => Collection },
): MeterProvider | undefined {
  if (settings.metrics === undefined) return undefined;
  const reader = createMetricPush({
    exporter: createMetricExporter(settings.metrics),
    producer: createProducer(collect, version),
    intervalMs: settings.metricIntervalMs,
    timeoutMs: settings.metricTimeoutMs,
    self,
    failures,
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function startTraces(
  { resource, sampling, isPinExpected }: EmitOptions,
  { traces, batch, resourceAttributes }: OtelSettings,
  { self, failures }: Counts,
): TracePipeline | undefined {
  if (traces === undefined) return undefined;
  const { ratio, slowMs, keptPerSecond, keptBurst } = sampling;
  return createTracePipeline({
    ...resource,
    workloads,
    resourceAttributes,
    exporter: createSpanExporter(traces),
    queue: batch,
    sampling: { ratio, slowMs, isPinExpected, kept: { perSecond: keptPerSecond, burst: keptBurst, buckets } },
    maxPins,
    self,
    failures,
  });
}

function ownResource({ version, instanceId }: EmitOptions['resource'], settings: OtelSettings): Resource {
  const named = settings.serviceName === undefined ? {} : { [ATTR_SERVICE_NAME]: settings.serviceName };
  return defaultResource().merge(
    resourceFromAttributes({
      [ATTR_SERVICE_NAME]: 'sidelight',
      [ATTR_SERVICE_VERSION]: version,
      [ATTR_SERVICE_INSTANCE_ID]: instanceId,
      ...settings.resourceAttributes,
      ...named,
    }),
  );
}

/** Waits for all, whatever becomes of them, but not for longer. */
async function withinTime(ms: number, work: readonly Promise<void>[]): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([Promise.allSettled(work), late]);
  clearTimeout(timer);
}
