import type { Chain } from '../../src/model/chain.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import type { Attempt, Exchange } from '../../src/model/exchange.ts';
import type { TcpConnection } from '../../src/model/tcp-connection.ts';
import type { AttemptVerdict, Cause, JudgedExchange, PinVerdict, Verdict } from '../../src/model/verdict.ts';
import { reporter } from './entries.ts';

/** 2023-11-14T22:13:20Z. */
export const startMs = 1_700_000_000_000;

export function ip(text: string): Endpoint {
  const [address, port] = text.split(':');
  return { text, kind: 'ip', ip: address, port: Number(port) };
}

/** A delivered 200 from 127.0.0.11:8080 over connection 7, 5 s old, unless told otherwise. */
export function attempt(overrides: Partial<Attempt> = {}): Attempt {
  return {
    number: 1,
    startMs,
    durationMs: 20,
    firstUpstreamTxMs: 1,
    firstUpstreamRxMs: 15,
    peer: ip('127.0.0.11:8080'),
    cluster: 'app',
    flags: [],
    code: 200,
    grpcStatus: undefined,
    transportFailure: undefined,
    connectionId: '7',
    connectionAgeMs: 5000,
    bytesSent: 10,
    bytesReceived: 20,
    ...overrides,
  };
}

/** `GET http://shop.test:8080/cart?user=1`, answered with 200 after one attempt of 20 ms, unless told otherwise. */
export function exchange(overrides: Partial<Exchange> = {}): Exchange {
  return {
    profile: 'observe',
    reporter,
    key: 'k1',
    cluster: 'app',
    route: undefined,
    startMs,
    durationMs: 20,
    method: 'GET',
    scheme: 'http',
    authority: 'shop.test:8080',
    path: '/cart?user=1',
    protocol: 'HTTP/1.1',
    requestId: 'r1',
    isGrpc: false,
    code: 200,
    codeDetails: 'via_upstream',
    grpcStatus: undefined,
    flags: [],
    attempts: [attempt()],
    delivered: 0,
    attemptCount: 1,
    attemptCountMismatch: false,
    redirects: 0,
    bytesSent: 10,
    bytesReceived: 20,
    incomplete: undefined,
    traceparent: undefined,
    envoyTraceId: undefined,
    envoySpanId: undefined,
    injected: undefined,
    ...overrides,
  };
}

export function pin(overrides: Partial<PinVerdict> = {}): PinVerdict {
  return { pin: 'current', reason: undefined, leftAtMs: undefined, source: 'dns', ...overrides };
}

function verdict(overrides: Partial<Verdict> = {}): Verdict {
  return {
    outcome: 'ok',
    unknownReason: undefined,
    phase: undefined,
    failedBeforeAbort: false,
    failedPhase: undefined,
    localResult: undefined,
    retryDenied: undefined,
    hedged: false,
    attempts: [ok],
    maskedLatencyMs: undefined,
    cause: undefined,
    pin: pin(),
    ...overrides,
  };
}

export const ok: AttemptVerdict = { result: 'ok', cause: undefined };
export function failedBy(cause: Cause): AttemptVerdict {
  return { result: 'failed', cause };
}

export function judged(
  parts: { exchange?: Partial<Exchange>; verdict?: Partial<Verdict>; chain?: JudgedExchange['chain'] } = {},
): JudgedExchange {
  return { exchange: exchange(parts.exchange), verdict: verdict(parts.verdict), chain: parts.chain };
}

/** The first attempt, at 127.0.0.12:8080, could not connect for 1 s; the second, at 127.0.0.11:8080, succeeded. */
export function masked(
  parts: { exchange?: Partial<Exchange>; verdict?: Partial<Verdict>; chain?: JudgedExchange['chain'] } = {},
): JudgedExchange {
  const dead = attempt({
    peer: ip('127.0.0.12:8080'),
    durationMs: 1000,
    firstUpstreamTxMs: undefined,
    firstUpstreamRxMs: undefined,
    code: undefined,
    flags: ['UF'],
    transportFailure: 'connection_refused',
    connectionId: undefined,
    connectionAgeMs: undefined,
  });
  const good = attempt({ number: 2, startMs: startMs + 1005 });
  return judged({
    exchange: { durationMs: 1025, attempts: [dead, good], delivered: 1, attemptCount: 2, ...parts.exchange },
    verdict: {
      outcome: 'masked',
      attempts: [failedBy('connect_failure'), ok],
      cause: 'connect_failure',
      maskedLatencyMs: 1005,
      ...parts.verdict,
    },
    chain: parts.chain,
  });
}

/** A reply that Envoy made itself. */
export function local(localResult: 'success' | 'client_error' | 'server_error', code: number): JudgedExchange {
  return judged({
    exchange: { code, attempts: [], delivered: undefined, attemptCount: 0 },
    verdict: { outcome: 'local', localResult, attempts: [], pin: undefined },
  });
}

export function tcpConnection(overrides: Partial<TcpConnection> = {}): TcpConnection {
  return {
    profile: 'observe',
    reporter,
    key: 't1',
    phase: 'ended',
    cluster: 'raw',
    peer: ip('127.0.0.11:9000'),
    connectionId: '3',
    startMs,
    durationMs: 60_000,
    bytesSent: 1,
    bytesReceived: 2,
    flags: [],
    transportFailure: undefined,
    ...overrides,
  };
}

const nothing = { exchanges: 0, attempts: 0, sent: 0, failed: 0, aborted: 0, durationMs: 0, missing: 0 };

/** A sidecar's exchange that tried three times, at a waypoint which tried 8 times for these three, and failed each time. */
export const chain = chainOf([
  {
    ...nothing,
    kind: 'sidecar_outbound',
    workload: 'shop',
    namespace: 'default',
    exchanges: 1,
    attempts: 3,
    failed: 1,
  },
  { ...nothing, kind: 'waypoint', workload: 'way', namespace: 'default', exchanges: 3, attempts: 8, failed: 3 },
]);

function chainOf(layers: Chain['layers']): Chain {
  return { layers, amplification: 23 / 3, origin: layers.at(-1) };
}
