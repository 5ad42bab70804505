import { type SpanContext, SpanKind, type SpanStatus, SpanStatusCode } from '@opentelemetry/api';
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_RESEND_COUNT,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_NETWORK_PEER_ADDRESS,
  ATTR_NETWORK_PEER_PORT,
  ATTR_NETWORK_PROTOCOL_NAME,
  ATTR_NETWORK_PROTOCOL_VERSION,
} from '@opentelemetry/semantic-conventions';
import type { Endpoint } from '../../model/endpoint.ts';
import { type Attempt, type Exchange, judgedAttempt, wasSent } from '../../model/exchange.ts';
import type { Reporter } from '../../model/reporter.ts';
import type { AttemptVerdict, JudgedExchange, PinVerdict, Verdict } from '../../model/verdict.ts';
import { attribute as a, type SpanFacts } from '../attributes.ts';
import { chainAttributes } from './chain-attributes.ts';
import { clusterAttributes } from './cluster-attributes.ts';
import {
  clientAttributes,
  grpcStatusAttributes,
  grpcStatusName,
  requestAttributes,
  spanName,
} from './request-attributes.ts';

/** A span as it will be started and ended. Times are epoch ms: Envoy's clock, of a pin ours. */
export interface SpanPlan {
  name: string;
  kind: SpanKind;
  startMs: number;
  endMs: number;
  facts: SpanFacts;
  status: SpanStatus;
  /** A span of another trace that this one has to do with. */
  link: SpanContext | undefined;
}

export const unset: SpanStatus = { code: SpanStatusCode.UNSET };

/**
 * SERVER where the proxy takes requests in its own name or at the door of its workload. A sidecar's way out is the
 * caller's own: a server span there would count requests that the workload never served. Under Envoy's own span, which
 * is the server or client span already, ours is INTERNAL.
 */
export function exchangeKind(reporter: Reporter, underEnvoy: boolean): SpanKind {
  return underEnvoy || reporter.kind === 'sidecar_outbound' ? SpanKind.INTERNAL : SpanKind.SERVER;
}

/** The span of a whole exchange. `pinSpan`: of the stale pin that it went over. */
export function exchangePlan(
  { exchange, verdict, chain }: JudgedExchange,
  underEnvoy: boolean,
  pinSpan: SpanContext | undefined,
): SpanPlan {
  const endMs = endOf(exchange);
  const used = judgedAttempt(exchange);
  const error = isFailure(verdict) ? errorType(verdict, exchange) : undefined;
  return {
    name: spanName(exchange.method, exchange.route ?? exchange.cluster),
    kind: exchangeKind(exchange.reporter, underEnvoy),
    startMs: exchange.startMs,
    endMs,
    facts: {
      ...requestAttributes(exchange),
      ...protocolAttributes(exchange.protocol),
      ...grpcStatusAttributes(exchange.isGrpc, exchange.grpcStatus),
      ...reporterAttributes(exchange.reporter),
      ...verdictAttributes(verdict),
      ...chainAttributes(chain),
      ...pinAttributes(verdict.pin, endMs),
      ...connectionAttributes(used),
      ...clusterAttributes(exchange.cluster),
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: exchange.code,
      [a.profile]: exchange.profile,
      [a.endpoint]: used?.peer.text,
      'sidelight.route': exchange.route,
      'sidelight.request_id': exchange.requestId,
      'sidelight.code_details': exchange.codeDetails,
      'sidelight.flags': flagText(exchange.flags),
      'sidelight.attempts': exchange.attempts.length,
      'sidelight.retried': exchange.attempts.length > 1,
      'sidelight.redirects': exchange.redirects > 0 ? exchange.redirects : undefined,
      [ATTR_ERROR_TYPE]: error,
    },
    status: error === undefined ? unset : errorStatus(error, exchange.code),
    link: pinSpan,
  };
}

/** The span of one attempt. `index` is its place in the exchange. `byEnvoy`: Envoy's tracer has a client span of it. */
export function attemptPlan(
  { exchange, verdict }: JudgedExchange,
  index: number,
  attempt: Attempt,
  byEnvoy: boolean,
): SpanPlan {
  const judged: AttemptVerdict | undefined = verdict.attempts[index];
  const error = judged?.result === 'failed' ? attemptError(judged, attempt) : undefined;
  const cluster = attempt.cluster ?? exchange.cluster;
  return {
    name: spanName(exchange.method, cluster),
    kind: byEnvoy ? SpanKind.INTERNAL : SpanKind.CLIENT,
    startMs: attempt.startMs,
    // Without a duration nothing is claimed: a span of no length.
    endMs: attempt.startMs + (attempt.durationMs ?? 0),
    facts: {
      ...requestAttributes(exchange),
      ...clientAttributes(exchange),
      ...grpcStatusAttributes(exchange.isGrpc, attempt.grpcStatus),
      ...peerAttributes(attempt.peer),
      ...connectionAttributes(attempt),
      ...clusterAttributes(cluster),
      [ATTR_HTTP_REQUEST_RESEND_COUNT]: attempt.number > 1 ? attempt.number - 1 : undefined,
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: attempt.code,
      [a.endpoint]: attempt.peer.text,
      [a.result]: judged?.result,
      [a.cause]: judged?.cause,
      'sidelight.attempt': attempt.number,
      'sidelight.request.sent': error === undefined ? undefined : wasSent(attempt),
      'sidelight.flags': flagText(attempt.flags),
      'sidelight.transport_failure': attempt.transportFailure,
      [ATTR_ERROR_TYPE]: error,
    },
    status: error === undefined ? unset : errorStatus(error, attempt.code),
    link: undefined,
  };
}

export function reporterAttributes({ kind, pod, nodeId, envoyVersion }: Reporter): SpanFacts {
  return {
    [a.reporterKind]: kind,
    'sidelight.reporter.pod': pod === '' ? undefined : pod,
    'sidelight.reporter.node_id': nodeId === '' ? undefined : nodeId,
    'sidelight.reporter.envoy_version': envoyVersion === '' ? undefined : envoyVersion,
  };
}

export function pinAttributes(pin: PinVerdict | undefined, endMs: number): SpanFacts {
  if (pin === undefined) return {};
  const leftAgoMs = pin.leftAtMs === undefined ? undefined : Math.max(0, Math.round(endMs - pin.leftAtMs));
  return { [a.pin]: pin.pin, 'sidelight.pin.reason': pin.reason, 'sidelight.pin.left_ago_ms': leftAgoMs };
}

export function connectionAttributes(
  used: { connectionId: string | undefined; connectionAgeMs: number | undefined } | undefined,
): SpanFacts {
  return { 'sidelight.connection.id': used?.connectionId, 'sidelight.connection.age_ms': used?.connectionAgeMs };
}

export function flagText(flags: readonly string[]): string | undefined {
  return flags.length === 0 ? undefined : flags.join(',');
}

/** Where Envoy gave no duration, the last that was seen. */
function endOf({ startMs, durationMs, attempts }: Exchange): number {
  if (durationMs !== undefined) return startMs + durationMs;
  return Math.max(startMs, ...attempts.map((attempt) => attempt.startMs + (attempt.durationMs ?? 0)));
}

function verdictAttributes(verdict: Verdict): SpanFacts {
  return {
    [a.outcome]: verdict.outcome,
    [a.cause]: verdict.cause,
    [a.localResult]: verdict.localResult,
    [a.hedged]: verdict.hedged ? true : undefined,
    'sidelight.unknown.reason': verdict.unknownReason,
    'sidelight.phase': verdict.phase,
    'sidelight.failed_before_abort': verdict.outcome === 'aborted' ? verdict.failedBeforeAbort : undefined,
    'sidelight.failed.phase': verdict.failedPhase,
    'sidelight.retry.denied': verdict.retryDenied,
    'sidelight.masked.latency_ms': verdict.maskedLatencyMs,
  };
}

function isFailure({ outcome, localResult }: Verdict): boolean {
  return outcome === 'failed' || outcome === 'exhausted' || localResult === 'server_error';
}

/** What the status code of the response says is not said again. */
function errorStatus(error: string, code: number | undefined): SpanStatus {
  return error === String(code) ? { code: SpanStatusCode.ERROR } : { code: SpanStatusCode.ERROR, message: error };
}

function errorType({ cause, localResult }: Verdict, { code, grpcStatus, flags }: Exchange): string {
  if (localResult !== undefined) return flags[0] ?? String(code ?? 'unknown');
  return statusError(cause, code, grpcStatus);
}

function attemptError(verdict: AttemptVerdict, { code, grpcStatus }: Attempt): string {
  return statusError(verdict.cause, code, grpcStatus);
}

/** A status says more than that it was one; any other cause speaks for itself. */
function statusError(cause: Verdict['cause'], code: number | undefined, grpcStatus: number | undefined): string {
  if (cause === 'status_5xx' || cause === 'retriable_status') return String(code ?? cause);
  if (cause === 'grpc_status') return grpcStatusName(grpcStatus) ?? cause;
  return cause ?? 'unknown';
}

function peerAttributes(peer: Endpoint): SpanFacts {
  const address = peer.ip ?? (peer.kind === 'pipe' ? peer.text : undefined);
  return { [ATTR_NETWORK_PEER_ADDRESS]: address, [ATTR_NETWORK_PEER_PORT]: peer.port };
}

function protocolAttributes(protocol: string | undefined): SpanFacts {
  const version = protocol?.match(/^HTTP\/(?<version>[\d.]+)$/)?.groups?.['version'];
  return version === undefined
    ? {}
    : { [ATTR_NETWORK_PROTOCOL_NAME]: 'http', [ATTR_NETWORK_PROTOCOL_VERSION]: version };
}
