import type { ClusterRule } from '../../config/cluster-rules.ts';
import type { Config } from '../../config/schema.ts';
import { reporterOf } from '../../decode/reporter.ts';
import { Discovery } from '../../discovery/discovery.ts';
import type { Emit } from '../../emit/create-emit.ts';
import type { PinnedConnection } from '../../emit/metrics/gauges.ts';
import type { Coverage } from '../../flow/coverage.ts';
import type { PinHistory } from '../../flow/pin-history.ts';
import { Recorder } from '../../flow/recorder.ts';
import { judgeTagged } from '../../flow/tag-pin.ts';
import type { LogSink } from '../../ingress/log-stream.ts';
import { createIngress, type Ingress } from '../../ingress/server.ts';
import { createTagger, type Tagger } from '../../ingress/tagger.ts';
import type { Logger } from '../../lib/logger.ts';
import { ingressCounters } from './counters.ts';

/** What every room may be built from. */
export interface Ground {
  config: Config;
  rules: (cluster: string) => ClusterRule;
  logger: Logger;
  /** Epoch ms. */
  now: () => number;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
}

/** Time between two looks at a watched file, ms. */
const filePollMs = 2000;

export function buildDiscovery({ config, rules, logger, now }: Ground): Discovery {
  const { dns, file, fileStaleAfterMs, maxLeftPerCluster } = config.discovery;
  return new Discovery({
    dns: dns.enabled ? dns : undefined,
    file: file === undefined ? undefined : { path: file, staleAfterMs: fileStaleAfterMs, pollMs: filePollMs },
    maxClusters: config.limits.clusters,
    maxLeftPerCluster,
    rule: rules,
    now,
    onChange: (change) => logger.info('discovery.changed', { ...change }),
    onError: (error) => logger.warn('discovery.failed', { error }),
  });
}

export function buildRecorder(
  { config, rules, logger, now }: Ground,
  { discovery, emit, history }: { discovery: Discovery; emit: Emit; history: PinHistory },
): Recorder {
  return new Recorder(
    {
      join: { ...config.join, maxAttempts: config.join.maxAttemptsPerExchange },
      connections: config.pins,
      rule: (cluster) => rules(cluster ?? '').success,
      view: () => discovery.snapshot(),
      watch: (cluster) => discovery.watch(cluster),
      reporterOf,
      now,
    },
    {
      exchange: (judged) => emit.exchange(judged),
      tcpEnd: (connection, verdict) => emit.tcpEnd(connection, verdict),
      joinEvent: (event) => emit.self.joinEvent(event),
      attemptCountMismatch: () => emit.self.attemptCountMismatch(),
      pinnedBytes: ({ reporter, cluster, peer }, bytes) =>
        emit.pinBytes({ reporter, cluster, endpoint: peer.text, bytes }),
      connectionEnd(connection, how, verdict) {
        if (how === 'evicted') emit.self.refused('connections');
        const cleared = history.ended(connection, how, verdict, now());
        if (cleared === undefined) return;
        const { cluster, peer, layer, connectionId, lastUsedMs } = connection;
        const { pin, leftAtMs } = verdict;
        logger.info('pin.cleared', {
          pin,
          cluster,
          endpoint: peer.text,
          layer,
          connectionId,
          leftAtMs,
          lastUsedMs,
          how,
        });
      },
    },
  );
}

export function buildIngress(
  ground: Ground,
  rooms: { discovery: Discovery; emit: Emit; recorder: Recorder; coverage: Coverage },
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

function logSink({ recorder, coverage }: { recorder: Recorder; coverage: Coverage }, now: () => number): LogSink {
  return {
    opened(stream) {
      coverage.heard(stream.reporter, stream.profile, now(), 1);
      recorder.opened(stream);
    },
    entries(stream, entries, receivedMs) {
      coverage.heard(stream.reporter, stream.profile, receivedMs);
      recorder.entries(stream, entries, receivedMs);
    },
    closed(stream) {
      coverage.streamEnded(stream.reporter, stream.profile);
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
    pinOf({ cluster, ...connection }) {
      discovery.watch(cluster);
      return judgeTagged(connection, discovery.snapshot().cluster(cluster), now());
    },
    tagged(facts, tags, pin) {
      if (facts.profile !== 'tag') return;
      coverage.heard(facts.reporter, 'tag', now());
      emit.tagged({ facts, tags, pin });
    },
  });
}

/** Every connection in use, for the gauges of the moment. */
export function pinGauges(recorder: Recorder): PinnedConnection[] {
  return recorder.board().map(({ connection: { reporter, cluster, peer, layer }, verdict, ageMs }) => ({
    reporter,
    cluster,
    endpoint: peer.text,
    layer,
    pin: verdict.pin,
    ageMs,
  }));
}
