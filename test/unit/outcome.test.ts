import { describe, expect, it } from 'vitest';
import { buildExchange } from '../../src/assemble/build-exchange.ts';
import { judgeExchange } from '../../src/judge/outcome.ts';
import { defaultStatusRule } from '../../src/judge/success.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import { downstreamEnd, endpoint, reporter, tunnelled, upstreamEnd } from '../support/entries.ts';

function judge(...entries: LogEntry[]) {
  const ends = entries.filter((entry) => entry.type === 'downstream_end');
  const tries = entries.filter((entry) => entry.type === 'upstream_end');
  const parts = { profile: 'observe', reporter, key: 'k1', ends, tries, incomplete: undefined } as const;
  return judgeExchange(buildExchange(parts), defaultStatusRule, undefined);
}

const refused = {
  startMs: 1000,
  durationMs: 2,
  code: undefined,
  flags: ['UF'],
  transportFailure: 'delayed connect error: Connection refused',
  tags: { connectionId: undefined },
} as const;
const grpc = { isGrpc: true };
const grpcOver = (grpcStatus: number | undefined) => ({ tags: { ...grpc, grpcStatus } });

describe('row a: not whole', () => {
  it('is unknown with its reason, never a zero', () => {
    const verdict = judge(upstreamEnd(), downstreamEnd({ attemptCount: 2 }));
    expect(verdict).toMatchObject({ outcome: 'unknown', unknownReason: 'attempts_missing' });
  });
});

describe('row c: the client left', () => {
  it('is aborted before the headers, with DC on HTTP/1.1', () => {
    const end = downstreamEnd({ code: undefined, flags: ['DC'], codeDetails: 'downstream_remote_disconnect' });
    expect(judge(upstreamEnd({ code: undefined }), end)).toMatchObject({
      outcome: 'aborted',
      phase: 'before_headers',
      failedBeforeAbort: false,
      attempts: [{ result: 'client_cancelled' }],
    });
  });
  it('is aborted in the body, with DR on HTTP/2', () => {
    const end = downstreamEnd({ flags: ['DR'], codeDetails: 'http2.remote_reset' });
    expect(judge(upstreamEnd(), end)).toMatchObject({
      outcome: 'aborted',
      phase: 'in_body',
      attempts: [{ result: 'client_cancelled' }],
    });
  });
  it('comes before the gRPC status that Envoy makes up', () => {
    const end = downstreamEnd({ flags: ['DR'], codeDetails: 'http2.remote_reset', ...grpcOver(2) });
    expect(judge(upstreamEnd(grpcOver(undefined)), end).outcome).toBe('aborted');
  });
  it('says whether an attempt had failed by then', () => {
    const end = downstreamEnd({
      code: undefined,
      flags: ['DC'],
      attemptCount: 2,
      codeDetails: 'downstream_remote_disconnect',
    });
    const verdict = judge(upstreamEnd(refused), upstreamEnd({ startMs: 1030, code: undefined }), end);
    expect(verdict).toMatchObject({
      outcome: 'aborted',
      failedBeforeAbort: true,
      attempts: [{ result: 'failed', cause: 'connect_failure' }, { result: 'client_cancelled' }],
    });
  });
});

describe('row d: no attempt reached a peer', () => {
  const nowhere = { upstream: undefined, attemptCount: undefined };
  it.each([
    [200, 'direct_response', [], 'success'],
    [301, 'direct_response', [], 'success'],
    [401, 'basic_auth_failed', ['UAEX'], 'client_error'],
    [404, 'route_not_found', ['NR'], 'client_error'],
    [503, 'no_healthy_upstream', ['UH'], 'server_error'],
  ] as const)('is local: %s %s', (code, codeDetails, flags, localResult) => {
    expect(judge(downstreamEnd({ ...nowhere, code, codeDetails, flags }))).toMatchObject({
      outcome: 'local',
      localResult,
    });
  });
  it('is local by the gRPC status where Envoy answers a gRPC call with 200', () => {
    const end = downstreamEnd({ ...nowhere, codeDetails: 'no_healthy_upstream', flags: ['UH'], ...grpcOver(14) });
    expect(judge(end)).toMatchObject({ outcome: 'local', localResult: 'server_error' });
  });
  it('is local where the max_requests breaker kept Envoy from the host that the entry names', () => {
    const end = downstreamEnd({
      code: 503,
      flags: ['UO'],
      codeDetails: 'upstream_reset_before_response_started{overflow}',
    });
    const kept = upstreamEnd({ code: undefined, flags: ['UO'], tags: { connectionId: undefined } });
    expect(judge(kept, end)).toMatchObject({ outcome: 'local', attempts: [] });
  });
  it('is a client error where an earlier filter refuses a gRPC call, under HTTP 200', () => {
    const end = downstreamEnd({ ...nowhere, codeDetails: 'rbac_access_denied', ...grpcOver(7) });
    expect(judge(end)).toMatchObject({ outcome: 'local', localResult: 'client_error' });
  });
  it('is local on a pool overflow, whose entry has no peer', () => {
    const end = downstreamEnd({
      upstream: undefined,
      code: 503,
      flags: ['UO'],
      codeDetails: 'upstream_reset_before_response_started{overflow}',
    });
    expect(judge(upstreamEnd({ upstream: undefined, code: undefined, flags: ['UO'] }), end)).toMatchObject({
      outcome: 'local',
      attempts: [],
    });
  });
});

describe('row e: success behind a failed attempt', () => {
  it('is masked, with its cause and what it cost', () => {
    const verdict = judge(upstreamEnd(refused), upstreamEnd({ startMs: 2030 }), downstreamEnd({ attemptCount: 2 }));
    expect(verdict).toMatchObject({
      outcome: 'masked',
      cause: 'connect_failure',
      maskedLatencyMs: 1030,
      hedged: false,
      attempts: [{ result: 'failed', cause: 'connect_failure' }, { result: 'ok' }],
    });
  });
  it('has no cause where nothing came back through a tunnel: what the log says is of a connection inside Envoy', () => {
    const silent = { startMs: 1000, code: undefined, upstream: tunnelled('127.0.0.11:8080') };
    const causeOf = (flags: LogEntry['flags'], code?: number) =>
      judge(
        upstreamEnd({ ...silent, flags, code }),
        upstreamEnd({ startMs: 1030 }),
        downstreamEnd({ attemptCount: 2 }),
      );
    expect(causeOf(['UC']).attempts[0]).toEqual({ result: 'failed', cause: 'unknown' });
    expect(causeOf(['UF']).attempts[0]).toEqual({ result: 'failed', cause: 'unknown' });
    // What the server itself did is told through the tunnel, too.
    expect(causeOf(['UR']).attempts[0]).toEqual({ result: 'failed', cause: 'reset' });
    expect(causeOf(['UC'], 200).attempts[0]).toEqual({ result: 'failed', cause: 'connection_termination' });
  });
  it('is masked by a retried status that would not fail by itself', () => {
    const conflict = upstreamEnd({ startMs: 1000, code: 409 });
    expect(judge(conflict, upstreamEnd({ startMs: 1030 }), downstreamEnd({ attemptCount: 2 }))).toMatchObject({
      outcome: 'masked',
      attempts: [{ result: 'failed', cause: 'retriable_status' }, { result: 'ok' }],
    });
  });
  it('is marked hedged where a side-by-side attempt won after a per-try timeout', () => {
    const slow = upstreamEnd({ startMs: 1000, durationMs: 400, code: undefined, flags: ['UT'] });
    const winner = upstreamEnd({
      startMs: 1200,
      durationMs: 100,
      flags: ['UT'],
      upstream: endpoint('127.0.0.12:8080'),
    });
    const end = downstreamEnd({ attemptCount: 2, upstream: endpoint('127.0.0.12:8080') });
    expect(judge(slow, winner, end)).toMatchObject({
      outcome: 'masked',
      hedged: true,
      attempts: [{ result: 'failed', cause: 'per_try_timeout' }, { result: 'ok' }],
    });
  });
});

describe('row f: success', () => {
  it('is ok', () => {
    expect(judge(upstreamEnd(), downstreamEnd())).toMatchObject({
      outcome: 'ok',
      attempts: [{ result: 'ok', cause: undefined }],
    });
  });
  it('is ok where the loser of a hedge was only superseded', () => {
    const loser = upstreamEnd({ startMs: 1000, durationMs: 300, code: undefined });
    const winner = upstreamEnd({ startMs: 1200, durationMs: 100, upstream: endpoint('127.0.0.12:8080') });
    const end = downstreamEnd({ attemptCount: 2, upstream: endpoint('127.0.0.12:8080') });
    expect(judge(loser, winner, end)).toMatchObject({
      outcome: 'ok',
      attempts: [{ result: 'superseded' }, { result: 'ok' }],
    });
  });
  it.each([404, 429, 499])('is ok with %s: the upstream answered', (code) => {
    expect(judge(upstreamEnd({ code }), downstreamEnd({ code })).outcome).toBe('ok');
  });
  it.each([0, 5, 7, 8, 16])('is ok with gRPC status %s', (status) => {
    expect(judge(upstreamEnd(grpcOver(status)), downstreamEnd(grpcOver(status))).outcome).toBe('ok');
  });
  it('is ok over a followed redirect, none of whose legs failed', () => {
    const first = upstreamEnd({ startMs: 1000, code: 302 });
    const ends = [downstreamEnd({ code: 302, codeDetails: 'internal_redirect' }), downstreamEnd({ startMs: 1020 })];
    expect(judge(first, upstreamEnd({ startMs: 1020 }), ...ends)).toMatchObject({
      outcome: 'ok',
      attempts: [{ result: 'ok' }, { result: 'ok' }],
    });
  });
});

describe('row g: failure after retries', () => {
  it('is exhausted, with the chain of causes', () => {
    const end = downstreamEnd({
      code: 503,
      flags: ['UF', 'URX'],
      attemptCount: 2,
      codeDetails: 'upstream_reset_before_response_started{connection_failure}',
    });
    expect(judge(upstreamEnd({ code: 503 }), upstreamEnd({ ...refused, startMs: 1030 }), end)).toMatchObject({
      outcome: 'exhausted',
      retryDenied: 'limit',
      cause: 'status_5xx',
      attempts: [
        { result: 'failed', cause: 'status_5xx' },
        { result: 'failed', cause: 'connect_failure' },
      ],
    });
  });
});

describe('row h: failure', () => {
  it.each([
    ['refused', { flags: ['UF'], transportFailure: 'delayed connect error: Connection refused' }, 'connect_failure'],
    ['connect timeout', { flags: ['UF'] }, 'connect_timeout'],
    [
      'TLS',
      { flags: ['UF'], transportFailure: 'TLS_error:|268435581:SSL_routines:CERTIFICATE_VERIFY_FAILED' },
      'tls_failure',
    ],
    ['closed before a response', { flags: ['UC'] }, 'connection_termination'],
    ['reset before a response', { flags: ['UR'] }, 'reset'],
    ['per-try timeout', { flags: ['UT'] }, 'per_try_timeout'],
    ['protocol error', { flags: ['UPE'] }, 'protocol_error'],
  ] as const)('is failed: %s', (_, facts, cause) => {
    const end = downstreamEnd({
      code: 503,
      flags: facts.flags,
      codeDetails: 'upstream_reset_before_response_started{x}',
    });
    expect(judge(upstreamEnd({ code: undefined, ...facts }), end)).toMatchObject({
      outcome: 'failed',
      cause,
      retryDenied: 'none',
      failedPhase: 'before_headers',
      attempts: [{ result: 'failed', cause }],
    });
  });
  it('is failed with the cause of the end, where the attempt that was cut has no flag', () => {
    const end = downstreamEnd({ code: 504, flags: ['UT'], codeDetails: 'response_timeout' });
    expect(judge(upstreamEnd({ code: undefined }), end)).toMatchObject({ outcome: 'failed', cause: 'timeout' });
  });
  it('is failed in the body under a status of 200', () => {
    const end = downstreamEnd({
      flags: ['UPE'],
      codeDetails: 'upstream_reset_after_response_started{connection_termination}',
    });
    expect(judge(upstreamEnd({ flags: ['UPE'] }), end)).toMatchObject({
      outcome: 'failed',
      failedPhase: 'in_body',
      attempts: [{ result: 'failed', cause: 'protocol_error' }],
    });
  });
  it.each(['max_duration_timeout', 'response_timeout', 'stream_idle_timeout'])(
    'is failed in the body: %s, no flag',
    (codeDetails) => {
      expect(judge(upstreamEnd(), downstreamEnd({ codeDetails }))).toMatchObject({
        outcome: 'failed',
        failedPhase: 'in_body',
        cause: 'timeout',
      });
    },
  );
  it('tells a refused stream by the details of the end', () => {
    const end = downstreamEnd({
      code: 503,
      flags: ['UR'],
      codeDetails: 'upstream_reset_before_response_started{remote_refused_stream_reset}',
    });
    expect(judge(upstreamEnd({ code: undefined, flags: ['UR'] }), end).cause).toBe('refused_stream');
  });
  it('says that the breaker refused the retry', () => {
    const end = downstreamEnd({ code: 503, flags: ['UO'], codeDetails: 'via_upstream' });
    expect(judge(upstreamEnd({ code: 503 }), end)).toMatchObject({
      outcome: 'failed',
      retryDenied: 'overflow',
      cause: 'status_5xx',
    });
  });
  it.each([2, 4, 12, 13, 14, 15])('is failed with gRPC status %s', (status) => {
    const verdict = judge(upstreamEnd(grpcOver(status)), downstreamEnd(grpcOver(status)));
    expect(verdict).toMatchObject({ outcome: 'failed', cause: 'grpc_status' });
  });
  it('is failed where a gRPC call ends without a status', () => {
    expect(judge(upstreamEnd(grpcOver(undefined)), downstreamEnd(grpcOver(undefined)))).toMatchObject({
      outcome: 'failed',
      cause: 'grpc_status',
    });
  });
});
