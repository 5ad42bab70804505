import type { Attempt, Exchange } from '../../model/exchange.ts';
import type { Reporter } from '../../model/reporter.ts';
import type { TcpConnection } from '../../model/tcp-connection.ts';
import {
  type AttemptVerdict,
  type JudgedExchange,
  type LocalResult,
  outcomes,
  pins,
  type Verdict,
} from '../../model/verdict.ts';
import { attribute as a, type Labels } from '../attributes.ts';
import { metrics } from '../names.ts';
import type { TaggedResponse } from '../tagged-response.ts';
import type { Scope } from './series.ts';
import type { SeriesTable } from './series-table.ts';

const localResults: readonly LocalResult[] = ['success', 'client_error', 'server_error'];

/** Starts what alerts are made of at 0, so that `rate()` does not miss the first of a kind. */
export function startAtZero(scope: Scope, nowMs: number): void {
  for (const outcome of outcomes) {
    if (outcome !== 'local') scope.add(metrics.requests, nowMs, { [a.outcome]: outcome }, 0);
  }
  for (const result of localResults)
    scope.add(metrics.requests, nowMs, { [a.outcome]: 'local', [a.localResult]: result }, 0);
  for (const pin of pins) scope.add(metrics.pinnedRequests, nowMs, { [a.pin]: pin }, 0);
  scope.add(metrics.attemptedRequests, nowMs, {}, 0);
}

/** Bytes over a connection whose endpoint is no longer listed. */
export interface PinnedBytes {
  reporter: Reporter;
  cluster: string;
  /** As Envoy spells it. */
  endpoint: string;
  /** Both ways, since the last call for this connection; HTTP and TCP alike. */
  bytes: number;
}

/** Turns what was judged into counters and histograms. Never throws. */
export class DomainMetrics {
  readonly #table: SeriesTable;

  constructor(table: SeriesTable) {
    this.#table = table;
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
    if (verdict.pin !== undefined) scope.add(metrics.pinnedRequests, nowMs, { [a.pin]: verdict.pin.pin });
    exchange.attempts.forEach((attempt, index) =>
      this.#attempt(exchange, attempt, verdict.attempts[index], verdict.hedged, nowMs),
    );
  }

  tagged({ facts, tags, pin }: TaggedResponse, nowMs: number): void {
    const scope = this.#table.cluster(facts.reporter, facts.cluster, nowMs);
    scope.add(metrics.requests, nowMs, { [a.outcome]: 'unknown' });
    if (tags.retried) scope.add(metrics.retriedRequests, nowMs);
    if (facts.upstream === undefined) return;
    scope.add(metrics.pinnedRequests, nowMs, { [a.pin]: pin.pin });
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

  pinBytes({ reporter, cluster, endpoint, bytes }: PinnedBytes, nowMs: number): void {
    const scope = this.#table.cluster(reporter, cluster, nowMs);
    this.#table.endpoint(scope, endpoint, nowMs).add(metrics.pinBytes, nowMs, {}, bytes);
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

function requestLabels({ outcome, localResult, hedged }: Verdict): Labels {
  const labels: Labels = { [a.outcome]: outcome };
  if (localResult !== undefined) labels[a.localResult] = localResult;
  if (hedged) labels[a.hedged] = 'true';
  return labels;
}

function resultLabels(result: AttemptVerdict['result'], cause: AttemptVerdict['cause']): Labels {
  return cause === undefined ? { [a.result]: result } : { [a.result]: result, [a.cause]: cause };
}
