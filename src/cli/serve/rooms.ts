import type { ClusterRule } from '../../config/cluster-rules.ts';
import type { Config } from '../../config/schema.ts';
import { reporterOf } from '../../decode/reporter.ts';
import type { EndpointChange } from '../../discovery/change.ts';
import { Discovery, type DiscoveryOptions } from '../../discovery/discovery.ts';
import { ExpectedPods } from '../../discovery/kubernetes/expected-pods.ts';
import type { Emit } from '../../emit/create-emit.ts';
import type { PinnedConnection } from '../../emit/metrics/gauges.ts';
import type { Coverage } from '../../flow/coverage.ts';
import { Recorder } from '../../flow/recorder.ts';
import { judgeTagged } from '../../flow/tag-pin.ts';
import type { LogSink } from '../../ingress/log-stream.ts';
import { createIngress, type Ingress } from '../../ingress/server.ts';
import { createTagger, type Tagger } from '../../ingress/tagger.ts';
import type { SidelightError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import type { UpstreamConnection } from '../../model/upstream-connection.ts';
import { type Books, idleTimeoutOf, rememberedMs } from './books.ts';
import { ingressCounters } from './counters.ts';
import { kubernetesAccess } from './kubernetes-access.ts';

/** What every room may be built from. */
export interface Ground {
  config: Config;
  rules: (cluster: string) => ClusterRule;
  logger: Logger;
  /** The process's environment. */
  env: Readonly<Record<string, string | undefined>>;
  /** Epoch ms. */
  now: () => number;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
}

/** Time between two looks at a watched file, ms. */
const filePollMs = 2000;

export function buildDiscovery(
  { config, rules, logger, env, now, random }: Ground,
  { restored, onChange }: { restored: DiscoveryOptions['restored']; onChange: (change: EndpointChange) => void },
): Discovery {
  const { kubernetes, dns, file, envoyAdmin, fileStaleAfterMs, maxLeftPerCluster } = config.discovery;
  return new Discovery({
    kubernetes: kubernetes.enabled
      ? { ...kubernetes, namespaces: kubernetes.namespaces, access: kubernetesAccess(kubernetes.kubeconfig, env) }
      : undefined,
    dns: dns.enabled ? dns : undefined,
    file: file === undefined ? undefined : { path: file, staleAfterMs: fileStaleAfterMs, pollMs: filePollMs },
    envoyAdmin,
    restored,
    maxClusters: config.limits.clusters,
    maxLeftPerCluster,
    rule: rules,
    now,
    random,
    onChange(change) {
      logger.info('discovery.changed', { ...change });
      onChange(change);
    },
    onError: (error) => logger.warn('discovery.failed', { error }),
  });
}

/** Who should report; `undefined`: the config does not say it. */
export function buildExpected({ config, logger, env, now }: Ground): ExpectedPods | undefined {
  const { expectedReporters: selectors, kubeconfig, timeoutMs, staleAfterMs } = config.discovery.kubernetes;
  if (selectors.length === 0) return undefined;
  const access = kubernetesAccess(kubeconfig, env);
  const onError = (error: SidelightError) => logger.warn('coverage.failed', { error });
  return new ExpectedPods({ access, selectors, timeoutMs, staleAfterMs, now, onError });
}

export function buildRecorder(
  { config, rules, now }: Ground,
  { discovery, emit, books, coverage }: { discovery: Discovery; emit: Emit; books: Books; coverage: Coverage },
): Recorder {
  const { activity, curves, flips, lives, forgotten } = books;
  const idleTimeoutMs = (connection: UpstreamConnection) =>
    rememberedMs(
      idleTimeoutOf(connection, { rules, view: discovery.snapshot() }),
      coverage.isConnected(connection.reporter),
    );
  return new Recorder(
    {
      join: { ...config.join, maxAttempts: config.join.maxAttemptsPerExchange },
      // A stream of another replica would have lived longer: an age is shortened by a fifth at most.
      connections: { ...config.pins, resumeMs: config.join.streamMaxAgeMs / 2 },
      rule: (cluster) => rules(cluster ?? '').success,
      view: () => discovery.snapshot(),
      watch: (cluster, nodeId) => discovery.watch(cluster, nodeId),
      idleTimeoutMs,
      reporterOf,
      now,
    },
    {
      exchange: (judged) => emit.exchange(judged),
      tcpEnd: (connection, verdict) => emit.tcpEnd(connection, verdict),
      joinEvent: (event) => emit.self.joinEvent(event),
      attemptCountMismatch: () => emit.self.attemptCountMismatch(),
      connectionForgotten: (connection) => forgotten.add(connection, idleTimeoutMs(connection)),
      connectionOpened: (connection) => flips.opened(connection),
      endpointTried: (cluster, endpoint) => activity.used(cluster, endpoint, now()),
      connectionUse(connection, moved, { leftAtMs }) {
        const { reporter, cluster, peer, lastUsedMs } = connection;
        activity.moved(cluster, peer, lastUsedMs);
        if (leftAtMs === undefined) return;
        curves.add({ connection, leftAtMs, atMs: lastUsedMs, ...moved });
        emit.pinUse({ reporter, cluster, endpoint: peer.text, ...moved });
      },
      connectionEnd(connection, how, last, by) {
        if (how === 'evicted') emit.self.refused('connections');
        lives.ended(connection, how, last, by, now());
      },
    },
  );
}

export function buildIngress(
  ground: Ground,
  rooms: { discovery: Discovery; emit: Emit; recorder: Recorder; coverage: Coverage; touch: () => void },
): Ingress {
  const { config, logger, now, monotonicMs, random } = ground;
  return createIngress({
    limits: config.limits,
    tagger: buildTagger(ground, rooms),
    logSink: logSink(rooms, now),
    counters: ingressCounters(rooms.emit.self, logger),
    now,
    monotonicMs,
    random,
    logStreamMaxAgeMs: config.join.streamMaxAgeMs,
  });
}

function logSink(
  { recorder, coverage, touch }: { recorder: Recorder; coverage: Coverage; touch: () => void },
  now: () => number,
): LogSink {
  return {
    opened(stream) {
      coverage.heard(stream, now(), 1);
      recorder.opened(stream);
    },
    entries(stream, entries, receivedMs) {
      coverage.heard(stream, receivedMs);
      recorder.entries(stream, entries, receivedMs);
      touch();
    },
    closed(stream) {
      coverage.streamEnded(stream);
      recorder.closed(stream);
    },
  };
}

function buildTagger(
  { config, now, random }: Ground,
  { discovery, emit, coverage }: { discovery: Discovery; emit: Emit; coverage: Coverage },
): Tagger {
  return createTagger({
    responseHeaders: config.tagging.responseHeaders,
    debugSecret: config.tagging.debugSecret,
    random,
    injectRootSampled: () => random() < config.traces.rootSampleRatio,
    pinOf({ cluster, nodeId, ...connection }) {
      discovery.watch(cluster, nodeId);
      return judgeTagged(connection, discovery.snapshot().cluster(cluster, nodeId), now());
    },
    tagged(facts, tags, pin) {
      if (facts.profile !== 'tag') return;
      coverage.heard({ reporter: facts.reporter, profile: 'tag', configVersion: 1 }, now());
      emit.tagged({ facts, tags, pin });
    },
  });
}

/** Every connection in use, for the gauges of the moment. */
export function pinGauges(recorder: Recorder, rules: Ground['rules']): PinnedConnection[] {
  return recorder.board().map(({ connection: { reporter, cluster, peer, layer }, verdict, ageMs }) => ({
    reporter,
    cluster,
    endpoint: peer.text,
    layer,
    pin: verdict.pin,
    ageMs,
    expected: rules(cluster).expectPin,
  }));
}
