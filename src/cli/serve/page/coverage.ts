import type { SelfMetrics } from '../../../emit/metrics/self-metrics.ts';
import type { Series } from '../../../emit/metrics/series.ts';
import { metrics } from '../../../emit/names.ts';
import { blindness } from '../../../judge/pin.ts';
import { reportersAnswer } from '../answers.ts';
import { type Rooms, reporterQuietMs } from '../build-rooms.ts';

const most = { reporters: 100, sources: 20 };

/** What each count means that something was lost, refused or not understood here. */
const losses = [
  metrics.selfDecodeErrors,
  metrics.selfRefused,
  metrics.selfFailOpen,
  metrics.selfJoinEvents,
  metrics.selfIncomplete,
  metrics.selfSpansDropped,
  metrics.selfLabelOverflow,
].map(({ name }) => name as string);

/** Who reports and who does not, what no source tells, and what Sidelight itself lost or is late with. */
export function coveragePart(rooms: Rooms, version: string) {
  const { ground, coverage, discovery, recorder, emit, startedMs, pageLag } = rooms;
  const nowMs = ground.now();
  const { reporters, expected } = reportersAnswer(rooms);
  const sources = discovery
    .snapshot()
    .clusters()
    .filter((view) => blindness(view, nowMs) !== undefined);
  return {
    version,
    startedMs: startedMs(),
    traceUrl: traceUrl(ground.config.traces.jaegerUrl),
    profiles: coverage.summary(nowMs, reporterQuietMs),
    expected: expected && { ...expected, missing: expected.missing.slice(0, most.reporters) },
    reporterCount: reporters.length,
    reporters: reporters
      // Who is silent matters more than who was heard a moment ago.
      .toSorted((a, b) => Number(a.streams > 0) - Number(b.streams > 0) || b.lastEntryMs - a.lastEntryMs)
      .slice(0, most.reporters)
      .map(({ silentMs: _silentMs, ...row }) => row),
    pins: countPins(recorder.board()),
    blindSourceCount: sources.length,
    blindSources: sources.slice(0, most.sources).map((view) => {
      const { cluster, source, subject, lastAnswerMs, lastError } = view;
      return { cluster, source, subject, lastAnswerMs, lastError, why: blindness(view, nowMs) };
    }),
    self: { ...selfView(emit.self), eventLoopLagMs: pageLag?.takeMs() },
  };
}

/** With `{traceId}` where the id belongs; `undefined`: nobody said where traces are. */
function traceUrl(configured: string | undefined): string | undefined {
  if (configured === undefined || configured.includes('{traceId}')) return configured;
  return `${configured.replace(/\/+$/, '')}/trace/{traceId}`;
}

/** Connections in use by pin; those of which nothing is known by reason too. */
function countPins(board: ReturnType<Rooms['recorder']['board']>) {
  const counts: Record<string, number> = {};
  const unknown: Record<string, number> = {};
  for (const { verdict } of board) {
    counts[verdict.pin] = (counts[verdict.pin] ?? 0) + 1;
    if (verdict.reason !== undefined) unknown[verdict.reason] = (unknown[verdict.reason] ?? 0) + 1;
  }
  return { counts, unknown };
}

function selfView({ scope }: SelfMetrics) {
  const series = [...scope.series()];
  const tag = series.find(({ kind }) => kind.metric.name === metrics.selfTagDuration.name);
  const streams = series.filter(({ kind }) => kind.metric.name === metrics.selfStreams.name);
  return {
    streams: Object.fromEntries(
      streams.map((one): [string, number] => [Object.values(one.kind.own).join(), numberOf(one)]),
    ),
    tag: tag && tagLatency(tag),
    losses: series
      .filter((one) => losses.includes(one.kind.metric.name) && numberOf(one) > 0)
      .map((one) => ({
        metric: one.kind.metric.name,
        means: one.kind.metric.description,
        of: Object.values(one.kind.own).join(', '),
        count: numberOf(one),
      })),
  };
}

function numberOf(series: Series): number {
  return 'value' in series ? series.value : series.count;
}

/** Its mean, and under which bound 99 of 100 are; `undefined` bound: over the last one. In ms. */
function tagLatency(series: Series) {
  if ('value' in series || series.count === 0) return undefined;
  let seen = 0;
  const at = series.counts.findIndex((count) => (seen += count) >= series.count * 0.99);
  const bound = metrics.selfTagDuration.buckets[at];
  return { count: series.count, meanMs: (series.sum / series.count) * 1000, p99BelowMs: bound && bound * 1000 };
}
