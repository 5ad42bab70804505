import type { Emit } from '../../emit/create-emit.ts';
import { EndpointActivity } from '../../endpoints/activity.ts';
import { DrainCurves } from '../../endpoints/drain-curves.ts';
import { Flips } from '../../endpoints/flips.ts';
import { Forgotten } from '../../endpoints/forgotten.ts';
import { PinLives } from '../../endpoints/pin-lives.ts';
import { type EndpointQuery, endpointReports } from '../../endpoints/report.ts';
import type { Coverage } from '../../flow/coverage.ts';
import type { Recorder } from '../../flow/recorder.ts';
import { adviseOn } from '../../judge/advice.ts';
import { mayHoldConnection } from '../../judge/contradiction.ts';
import type { EndpointReport } from '../../model/endpoint-report.ts';
import type { ClearedPin, PinEvent, PinLife } from '../../model/pin-life.ts';
import type { UpstreamConnection } from '../../model/upstream-connection.ts';
import type { DiscoveryView } from '../../model/view.ts';
import type { Ground } from './rooms.ts';

/** How far back an endpoint's share is counted, ms. */
export const windowMs = 5 * 60_000;
/** Pins that cleared, kept for the API. */
const maxCleared = 500;
/** Endpoints that left and were still used, with a curve each. */
const maxCurves = 200;
/** Envoy's own: `idle_timeout` of an HTTP upstream and of the TCP proxy. */
const defaultIdleTimeoutMs = 60 * 60_000;
/** How long the connections of a proxy that went silent are remembered at least: it may be using them. */
const silentMs = 24 * 60 * 60_000;

/** The books on every endpoint, and who writes into them. */
export interface Books {
  activity: EndpointActivity;
  curves: DrainCurves;
  flips: Flips;
  lives: PinLives;
  forgotten: Forgotten;
}

export function openBooks({ config, rules, logger }: Ground, emit: Emit): Books {
  const told = (life: PinLife | ClearedPin) => {
    const { connection, ...rest } = life;
    const { reporter, cluster, peer, layer, connectionId, openedMs, lastUsedMs } = connection;
    const { workload, namespace, pod, nodeId } = reporter;
    const expected = rules(cluster).expectPin ? { expected: true } : {};
    const of = { cluster, endpoint: peer.text, layer, connectionId, workload, namespace, pod, nodeId };
    return { ...rest, ...of, openedMs, lastUsedMs, ...expected };
  };
  const flips = new Flips(config.limits.clusters);
  return {
    flips,
    forgotten: new Forgotten(config.limits.endpoints),
    activity: new EndpointActivity({ windowMs, maxEndpoints: config.limits.endpoints }),
    curves: new DrainCurves(maxCurves),
    lives: new PinLives(
      { maxCleared, waitMs: config.pins.quietMs },
      {
        changed(event: PinEvent, life) {
          logger.info(`pin.${event}`, () => told(life));
          emit.pinEvent(event, life);
        },
        endpointCleared(endpoint) {
          flips.endpointCleared(endpoint);
          logger.info('endpoint.cleared', { ...endpoint });
        },
      },
    ),
  };
}

/**
 * After which its proxy closes a connection that nobody uses, ms; `undefined`: never. What the proxy says of a cluster
 * holds for HTTP: a TCP proxy has an idle timeout of its own, in its listener.
 */
export function idleTimeoutOf(
  { cluster, reporter, layer }: Pick<UpstreamConnection, 'cluster' | 'reporter' | 'layer'>,
  { rules, view }: { rules: Ground['rules']; view: DiscoveryView },
): number | undefined {
  const told = layer === 'http' ? view.proxy(cluster, reporter.nodeId)?.idleTimeoutMs : undefined;
  const timeoutMs = rules(cluster).idleTimeoutMs ?? told ?? defaultIdleTimeoutMs;
  return timeoutMs === 0 ? undefined : timeoutMs;
}

/** How long a connection of which nothing is heard is remembered, ms; `undefined`: for ever. */
export function rememberedMs(idleTimeoutMs: number | undefined, isConnected: boolean): number | undefined {
  return idleTimeoutMs === undefined || isConnected ? idleTimeoutMs : Math.max(idleTimeoutMs, silentMs);
}

/** To be called about once a second: what changed without an entry. */
export function auditPins(
  { lives }: Books,
  recorder: Recorder,
  { view, nowMs }: { view: DiscoveryView; nowMs: number },
): void {
  lives.update(
    recorder.suspects((connection) => lives.has(connection)),
    nowMs,
  );
  // Envoy says nothing when an idle connection closes; its counters do, where they are asked.
  if (view.proxies().length > 0)
    for (const connection of recorder.held()) if (isGone(connection, view, nowMs)) recorder.gone(connection);
}

/** Whether its proxy proves, by an answer that is younger than all that was heard of it, that it is not there. */
function isGone(
  { cluster, reporter, peer, lastHeardMs }: UpstreamConnection,
  view: DiscoveryView,
  nowMs: number,
): boolean {
  const proxy = view.proxy(cluster, reporter.nodeId);
  return proxy !== undefined && lastHeardMs < proxy.lastAnswerMs && mayHoldConnection(proxy, peer, nowMs) === false;
}

/** What is known of each endpoint that is asked for. */
export function reportEndpoints(
  { activity, curves, forgotten }: Books,
  from: { recorder: Recorder; view: DiscoveryView; coverage: Coverage; rules: Ground['rules']; nowMs: number },
  query: EndpointQuery,
): EndpointReport[] {
  const { recorder, view, coverage, rules, nowMs } = from;
  return endpointReports(
    {
      view,
      uses: [...activity.uses(nowMs)],
      inUse: recorder.board(),
      parked: recorder.parked(),
      curves,
      forgottenAt: (cluster, endpoint) => forgotten.at(cluster, endpoint, nowMs),
      isConnected: (reporter) => coverage.isConnected(reporter),
      idleTimeoutMs: (connection) => idleTimeoutOf(connection, { rules, view }),
      advise: ({ connection, verdict }) =>
        adviseOn(connection, verdict, view.proxy(connection.cluster, connection.reporter.nodeId)),
      nowMs,
    },
    query,
  );
}
