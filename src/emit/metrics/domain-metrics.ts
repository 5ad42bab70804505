import type { Attempt, Exchange } from '../../model/exchange.ts';
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
  type Verdict,
} from '../../model/verdict.ts';
import { attribute as a, type Labels } from '../attributes.ts';
import { metrics } from '../names.ts';
import type { IsPinExpected } from '../pin-expected.ts';
import type { TaggedResponse } from '../tagged-response.ts';
import { pinLabels } from './pin-labels.ts';
import type { Scope } from './series.ts';
import type { SeriesTable } from './series-table.ts';

const localResults: readonly LocalResult[] = ['success', 'client_error', 'server_error'];

/** Starts what alerts are made of at 0, so that `rate()` does not miss the first of a kind. */
export function startAtZero(scope: Scope, nowMs: number, isPinExpected: IsPinExpected): void {
  const expected = isPinExpected(scope.labels[a.cluster]);
  for (const outcome of outcomes) {
    if (outcome !== 'local') scope.add(metrics.requests, nowMs, { [a.outcome]: outcome }, 0);
  }
  for (const result of localResults)
    scope.add(metrics.requests, nowMs, { [a.outcome]: 'local', [a.localResult]: result }, 0);
  for (const pin of pins) scope.add(metrics.pinnedRequests, nowMs, pinLabels(pin, expected), 0);
  scope.add(metrics.attemptedRequests, nowMs, {}, 0);
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
    const outcome = { [a.outcome]: verdict.outcome };
    scope.add(metrics.requests, nowMs, requestLabels(verdict));
    if (exchange.durationMs !== undefined)
      scope.observe(metrics.requestDuration, nowMs, exchange.durationMs / 1000, outcome);
    if (exchange.attempts.length > 0) scope.add(metrics.attemptedRequests, nowMs);
    if (verdict.maskedLatencyMs !== undefined && !verdict.hedged)
      scope.observe(metrics.maskedLatency, nowMs, verdict.maskedLatencyMs / 1000, {
        [a.cause]: verdict.cause ?? 'unknown',
      });
    if (verdict.pin !== undefined) this.#pinnedRequest(scope, exchange.cluster, verdict.pin.pin, nowMs);
    exchange.attempts.forEach((attempt, index) =>
      this.#attempt(exchange, attempt, verdict.attempts[index], verdict.hedged, nowMs),
    );
  }

  tagged({ facts, tags, pin }: TaggedResponse, nowMs: number): void {
    const scope = this.#table.cluster(facts.reporter, facts.cluster, nowMs);
    scope.add(metrics.requests, nowMs, { [a.outcome]: 'unknown' });
    if (tags.retried) scope.add(metrics.retriedRequests, nowMs);
    if (facts.upstream === undefined) return;
    this.#pinnedRequest(scope, facts.cluster, pin.pin, nowMs);
    if (facts.connectionAgeMs !== undefined)
      scope.observe(metrics.connectionAge, nowMs, facts.connectionAgeMs / 1000, { [a.layer]: 'http' });
  }

  tcpEnd(connection: TcpConnection, { result, cause }: AttemptVerdict, nowMs: number): void {
    const scope = this.#table.cluster(connection.reporter, connection.cluster, nowMs);
    const place = connection.peer === undefined ? scope : this.#table.endpoint(scope, connection.peer.text, nowMs);
    place.add(metrics.tcpConnections, nowMs, resultLabels(result, cause));
    if (connection.durationMs !== undefined && result === 'ok')
      scope.observe(metrics.connectionAge, nowMs, connection.durationMs / 1000, { [a.layer]: 'tcp' });
  }

  pinUse({ reporter, cluster, endpoint, requests, bytes }: PinnedUse, nowMs: number): void {
    const place = this.#table.endpoint(this.#table.cluster(reporter, cluster, nowMs), endpoint, nowMs);
    place.add(metrics.pinBytes, nowMs, {}, bytes);
    // A TCP connection has no requests: a 0 would say that there were none.
    if (requests > 0) place.add(metrics.pinRequests, nowMs, {}, requests);
  }

  pinEvent(event: PinEvent, { connection, ...life }: PinLife | ClearedPin, nowMs: number): void {
    const { reporter, cluster, peer, layer } = connection;
    const scope = this.#table.cluster(reporter, cluster, nowMs);
    if (event === 'opened') {
      startLifeAtZero(scope, layer, nowMs);
      startUseAtZero(this.#table.endpoint(scope, peer.text, nowMs), layer, nowMs);
    }
    const how = 'how' in life ? { [a.how]: life.how } : {};
    scope.add(metrics.pinEvents, nowMs, { [a.layer]: layer, [a.event]: event, ...how });
  }

  #pinnedRequest(scope: Scope, cluster: string | undefined, pin: Pin, nowMs: number): void {
    const expected = hasLeft(pin) && this.#isPinExpected(cluster);
    scope.add(metrics.pinnedRequests, nowMs, pinLabels(pin, expected));
  }

  #attempt(
    exchange: Exchange,
    attempt: Attempt,
    verdict: AttemptVerdict | undefined,
    hedged: boolean,
    nowMs: number,
  ): void {
    const scope = this.#table.cluster(exchange.reporter, attempt.cluster ?? exchange.cluster, nowMs);
    const labels = resultLabels(verdict?.result ?? 'failed', verdict === undefined ? 'unknown' : verdict.cause);
    if (hedged) labels[a.hedged] = 'true';
    this.#table.endpoint(scope, attempt.peer.text, nowMs).add(metrics.attempts, nowMs, labels);
    if (attempt.connectionAgeMs !== undefined)
      scope.observe(metrics.connectionAge, nowMs, attempt.connectionAgeMs / 1000, { [a.layer]: 'http' });
  }
}

type Layer = PinLife['connection']['layer'];

/** With the first pin of a cluster, or `rate()` would miss the first that becomes stale. */
function startLifeAtZero(scope: Scope, layer: Layer, nowMs: number): void {
  for (const event of pinEvents) {
    const labels = { [a.layer]: layer, [a.event]: event };
    if (event !== 'cleared') scope.add(metrics.pinEvents, nowMs, labels, 0);
    else for (const how of clearedHows) scope.add(metrics.pinEvents, nowMs, { ...labels, [a.how]: how }, 0);
  }
}

/** With the first pin of an endpoint. */
function startUseAtZero(place: Scope, layer: Layer, nowMs: number): void {
  place.add(metrics.pinBytes, nowMs, {}, 0);
  if (layer === 'http') place.add(metrics.pinRequests, nowMs, {}, 0);
}

function requestLabels({ outcome, localResult, hedged }: Verdict): Labels {
  const labels: Labels = { [a.outcome]: outcome };
  if (localResult !== undefined) labels[a.localResult] = localResult;
  if (hedged) labels[a.hedged] = 'true';
  return labels;
}

function resultLabels(result: AttemptVerdict['result'], cause: AttemptVerdict['cause']): Labels {
  return cause === undefined ? { [a.result]: result } : { [a.result]: result, [a.cause]: cause };
}
