import type { Attempt } from '../../model/exchange.ts';
import { type ClearedPin, clearedHows, type PinEvent, type PinLife, pinEvents } from '../../model/pin-life.ts';
import type { Reporter } from '../../model/reporter.ts';
import type { TcpConnection } from '../../model/tcp-connection.ts';
import {
  type AttemptVerdict,
  hasLeft,
  type JudgedExchange,
  type LocalResult,
  outcomes,
  type Pin,
  pins,
} from '../../model/verdict.ts';
import { attribute as a } from '../attributes.ts';
import { metrics } from '../names.ts';
import type { IsPinExpected } from '../pin-expected.ts';
import type { TaggedResponse } from '../tagged-response.ts';
import { isExpected } from './pin-labels.ts';
import type { Scope } from './series.ts';
import { KindsOf, type SeriesKind, seriesKind } from './series-kind.ts';
import type { ClusterScope, SeriesTable } from './series-table.ts';

const localResults: readonly LocalResult[] = ['success', 'client_error', 'server_error'];

const requestsBy = new KindsOf(metrics.requests, a.outcome, a.localResult, a.hedged);
const requestDurationBy = new KindsOf(metrics.requestDuration, a.outcome);
const attemptedRequests = seriesKind(metrics.attemptedRequests);
const retriedRequests = seriesKind(metrics.retriedRequests);
const maskedLatencyBy = new KindsOf(metrics.maskedLatency, a.cause);
const pinnedRequestsBy = new KindsOf(metrics.pinnedRequests, a.pin, a.expected);
const connectionAgeBy = new KindsOf(metrics.connectionAge, a.layer);
const attemptsBy = new KindsOf(metrics.attempts, a.result, a.cause, a.hedged);
const tcpConnectionsBy = new KindsOf(metrics.tcpConnections, a.result, a.cause);
const pinBytes = seriesKind(metrics.pinBytes);
const pinRequests = seriesKind(metrics.pinRequests);
const pinEventsBy = new KindsOf(metrics.pinEvents, a.layer, a.event, a.how);

/** Starts what alerts are made of at 0, so that `rate()` does not miss the first of a kind. */
export function startAtZero(scope: Scope, nowMs: number, isPinExpected: IsPinExpected): void {
  const expected = isPinExpected(scope.labels[a.cluster]);
  for (const outcome of outcomes) {
    if (outcome !== 'local') scope.add(requestsBy.of(outcome), nowMs, 0);
  }
  for (const result of localResults) scope.add(requestsBy.of('local', result), nowMs, 0);
  for (const pin of pins) scope.add(pinnedKind(pin, expected), nowMs, 0);
  scope.add(attemptedRequests, nowMs, 0);
}

/** What moved on a connection whose endpoint is no longer listed. */
export interface PinnedUse {
  reporter: Reporter;
  cluster: string;
  /** As Envoy spells it. */
  endpoint: string;
  /** Requests that ended on it since the last call; of TCP always 0. */
  requests: number;
  /** Both ways, since the last call for this connection; HTTP and TCP alike. */
  bytes: number;
}

/** Turns what was judged into counters and histograms. Never throws. */
export class DomainMetrics {
  readonly #table: SeriesTable;
  readonly #isPinExpected: IsPinExpected;

  constructor(table: SeriesTable, isPinExpected: IsPinExpected) {
    this.#table = table;
    this.#isPinExpected = isPinExpected;
  }

  exchange({ exchange, verdict }: JudgedExchange, nowMs: number): void {
    const scope = this.#table.cluster(exchange.reporter, exchange.cluster, nowMs);
    const { outcome, localResult, hedged } = verdict;
    scope.add(requestsBy.of(outcome, localResult, trueOrAbsent(hedged)), nowMs);
    if (exchange.durationMs !== undefined)
      scope.observe(requestDurationBy.of(outcome), nowMs, exchange.durationMs / 1000);
    if (exchange.attempts.length > 0) scope.add(attemptedRequests, nowMs);
    if (verdict.maskedLatencyMs !== undefined && !hedged)
      scope.observe(maskedLatencyBy.of(verdict.cause ?? 'unknown'), nowMs, verdict.maskedLatencyMs / 1000);
    if (verdict.pin !== undefined) this.#pinnedRequest(scope, exchange.cluster, verdict.pin.pin, nowMs);
    exchange.attempts.forEach((attempt, index) => {
      const { cluster = exchange.cluster } = attempt;
      const own = cluster === exchange.cluster ? scope : this.#table.cluster(exchange.reporter, cluster, nowMs);
      this.#attempt(own, attempt, verdict.attempts[index] ?? notJudged, hedged, nowMs);
    });
  }

  tagged({ facts, tags, pin }: TaggedResponse, nowMs: number): void {
    const scope = this.#table.cluster(facts.reporter, facts.cluster, nowMs);
    scope.add(requestsBy.of('unknown'), nowMs);
    if (tags.retried) scope.add(retriedRequests, nowMs);
    if (facts.upstream === undefined) return;
    this.#pinnedRequest(scope, facts.cluster, pin.pin, nowMs);
    if (facts.connectionAgeMs !== undefined)
      scope.observe(connectionAgeBy.of('http'), nowMs, facts.connectionAgeMs / 1000);
  }

  tcpEnd(connection: TcpConnection, { result, cause }: AttemptVerdict, nowMs: number): void {
    const scope = this.#table.cluster(connection.reporter, connection.cluster, nowMs);
    const place = connection.peer === undefined ? scope : this.#table.endpoint(scope, connection.peer.text, nowMs);
    place.add(tcpConnectionsBy.of(result, cause), nowMs);
    if (connection.durationMs !== undefined && result === 'ok')
      scope.observe(connectionAgeBy.of('tcp'), nowMs, connection.durationMs / 1000);
  }

  pinUse({ reporter, cluster, endpoint, requests, bytes }: PinnedUse, nowMs: number): void {
    const place = this.#table.endpoint(this.#table.cluster(reporter, cluster, nowMs), endpoint, nowMs);
    place.add(pinBytes, nowMs, bytes);
    // A TCP connection has no requests: a 0 would say that there were none.
    if (requests > 0) place.add(pinRequests, nowMs, requests);
  }

  pinEvent(event: PinEvent, { connection, ...life }: PinLife | ClearedPin, nowMs: number): void {
    const { reporter, cluster, peer, layer } = connection;
    const scope = this.#table.cluster(reporter, cluster, nowMs);
    if (event === 'opened') {
      startLifeAtZero(scope, layer, nowMs);
      startUseAtZero(this.#table.endpoint(scope, peer.text, nowMs), layer, nowMs);
    }
    scope.add(pinEventsBy.of(layer, event, 'how' in life ? life.how : undefined), nowMs);
  }

  #pinnedRequest(scope: Scope, cluster: string | undefined, pin: Pin, nowMs: number): void {
    const expected = hasLeft(pin) && this.#isPinExpected(cluster);
    scope.add(pinnedKind(pin, expected), nowMs);
  }

  #attempt(
    scope: ClusterScope,
    attempt: Attempt,
    { result, cause }: AttemptVerdict,
    hedged: boolean,
    nowMs: number,
  ): void {
    const place = this.#table.endpoint(scope, attempt.peer.text, nowMs);
    place.add(attemptsBy.of(result, cause, trueOrAbsent(hedged)), nowMs);
    if (attempt.connectionAgeMs !== undefined)
      scope.observe(connectionAgeBy.of('http'), nowMs, attempt.connectionAgeMs / 1000);
  }
}

type Layer = PinLife['connection']['layer'];

/** With the first pin of a cluster, or `rate()` would miss the first that becomes stale. */
function startLifeAtZero(scope: Scope, layer: Layer, nowMs: number): void {
  for (const event of pinEvents) {
    if (event !== 'cleared') scope.add(pinEventsBy.of(layer, event), nowMs, 0);
    else for (const how of clearedHows) scope.add(pinEventsBy.of(layer, event, how), nowMs, 0);
  }
}

/** With the first pin of an endpoint. */
function startUseAtZero(place: Scope, layer: Layer, nowMs: number): void {
  place.add(pinBytes, nowMs, 0);
  if (layer === 'http') place.add(pinRequests, nowMs, 0);
}

const notJudged: AttemptVerdict = { result: 'failed', cause: 'unknown' };

function pinnedKind(pin: Pin, clusterExpects: boolean): SeriesKind {
  return pinnedRequestsBy.of(pin, trueOrAbsent(isExpected(pin, clusterExpects)));
}

function trueOrAbsent(value: boolean): 'true' | undefined {
  return value ? 'true' : undefined;
}
