import { expect, test } from 'vitest';
import { decodeLogMessage, type LogMessage } from '../../src/decode/log-message.ts';
import { responseFacts } from '../../src/decode/processing-facts.ts';
import { decodeProcessingRequest, type ProcessingMessage } from '../../src/decode/processing-request.ts';
import { limits, recorded } from '../support/wire.ts';

const reporter = {
  kind: 'sidecar_outbound',
  workload: 'shop',
  namespace: 'store',
  pod: 'shop-7d9f',
  nodeId: 'sidecar~10.0.0.5~shop-7d9f.store~store.svc.cluster.local',
  envoyVersion: '1.40.0',
};

function logMessage(name: string): LogMessage {
  const result = decodeLogMessage(recorded(name), limits);
  if (!result.ok) throw new Error(result.error.text);
  return result.message;
}

function processingMessage(name: string): ProcessingMessage {
  const result = decodeProcessingRequest(recorded(name), limits);
  if (!result.ok) throw new Error(result.error.text);
  return result.message;
}

const http = logMessage('als-01');
const entriesOf = (path: string) => http.entries.filter((entry) => entry.path === path);

test('HTTP and TCP entries come on two streams, each beginning with who logs', () => {
  expect(http.identifier).toEqual({ logName: 'sidelight.full', reporter });
  expect(logMessage('als-02').identifier).toEqual({ logName: 'sidelight.full', reporter });
  expect(logMessage('als-03').identifier).toBeUndefined();
  expect(http.refusedEntries).toBe(0);
});

test('the first request of a fresh Envoy: connection 0 is the client’s, the upstream has another', () => {
  const [attempt, end] = entriesOf('/up');
  expect(end?.key).toMatch(/^0\.\d{19}$/);
  expect(attempt?.tags).toMatchObject({ connectionId: '2', connectionAgeMs: 0.09, attemptCountHeader: 1 });
  expect(end?.tags).toEqual(attempt?.tags);
  expect(attempt?.key).toBe(end?.key);
});

test('a request that was retried gives a failed attempt, the winner and one end', () => {
  const key = entriesOf('/retried')[0]?.key;
  const [failed, won, end] = entriesOf('/retried').filter((entry) => entry.key === key);
  expect(failed).toMatchObject({
    layer: 'http',
    type: 'upstream_end',
    cluster: 'half',
    route: 'retried',
    flags: ['UF'],
    code: undefined,
    codeDetails: undefined,
    transportFailure: 'delayed connect error: Connection refused',
    attemptCount: undefined,
    firstUpstreamTxMs: undefined,
    upstream: { kind: 'ip', ip: '127.0.0.1' },
  });
  expect(failed?.tags.connectionId).toBeUndefined();
  expect(won).toMatchObject({ type: 'upstream_end', flags: [], code: 200, attemptCount: undefined });
  expect(won?.upstream?.text).not.toBe(failed?.upstream?.text);
  expect(won?.tags.attemptCountHeader).toBe(2);
  expect(end).toMatchObject({
    type: 'downstream_end',
    code: 200,
    codeDetails: 'via_upstream',
    attemptCount: 2,
    method: 'GET',
    scheme: 'http',
    protocol: 'HTTP/1.1',
  });
  expect(end?.upstream).toEqual(won?.upstream);
  expect(end?.startMs).toBeLessThan(failed?.startMs ?? 0);
  expect(won?.durationMs).toBeGreaterThan(won?.firstUpstreamRxMs ?? Number.POSITIVE_INFINITY);
});

test('a local reply has no attempt: its count is 0 and not absent', () => {
  const [end] = entriesOf('/no-route-here');
  expect(end).toMatchObject({ type: 'downstream_end', flags: ['NR'], code: 404, attemptCount: 0, cluster: undefined });
  expect(end).toMatchObject({ codeDetails: 'route_not_found', upstream: undefined });
  expect(end?.tags.connectionId).toBeUndefined();
});

test('body bytes are those of the entry’s own peer: client downstream, endpoint upstream', () => {
  const [attempt, end] = entriesOf('/up').filter((entry) => entry.method === 'POST');
  expect(end).toMatchObject({ bytesReceived: 7, bytesSent: 5 });
  expect(attempt).toMatchObject({ bytesReceived: 5, bytesSent: 7 });
});

test('the caller’s traceparent is on both entries', () => {
  const traceparents = entriesOf('/inject').map((entry) => entry.tags.traceparent);
  expect(traceparents).toEqual(Array(2).fill('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'));
});

test('a TCP connection says its age while it lives, by the tag duration_ms', () => {
  const entries = [...logMessage('als-02').entries, ...logMessage('als-03').entries];
  expect(entries.map((entry) => entry.type)).toEqual([
    'tcp_upstream_connected',
    'tcp_periodic',
    'tcp_periodic',
    'tcp_connection_end',
  ]);
  expect(entries.map((entry) => Math.round(entry.durationMs ?? -1))).toEqual([0, 299, 599, 702]);
  expect(new Set(entries.map((entry) => entry.key)).size).toBe(1);
  expect(entries[3]).toMatchObject({
    layer: 'tcp',
    cluster: 'echo',
    bytesSent: 4,
    bytesReceived: 4,
    method: undefined,
  });
  expect(entries[0]?.tags.connectionId).toBe('13');
});

test('the response phase of a retried request', () => {
  const facts = responseFacts(processingMessage('ext-proc-08'), 'full', undefined, limits.textBytes);
  const [, won] = entriesOf('/retried');
  expect(facts).toMatchObject({
    profile: 'full',
    reporter: { ...reporter, envoyVersion: '' },
    key: won?.key,
    cluster: 'half',
    route: 'retried',
    attemptCount: 2,
    code: 200,
    codeDetails: 'via_upstream',
    flags: [],
    method: 'GET',
    path: '/retried',
    connectionId: won?.tags.connectionId,
    connectionAgeMs: won?.tags.connectionAgeMs,
    debugSecret: undefined,
  });
  expect(facts.upstream).toEqual(won?.upstream);
});

test('the response phase of a local reply: no endpoint, no connection, count 0', () => {
  const facts = responseFacts(processingMessage('ext-proc-12'), 'full', undefined, limits.textBytes);
  expect(facts).toMatchObject({ code: 404, flags: ['NR'], attemptCount: 0, path: '/no-route-here' });
  expect(facts).toMatchObject({ upstream: undefined, connectionId: undefined, connectionAgeMs: undefined });
});

test('the two phases of one request say the same time and key', () => {
  const facts = responseFacts(processingMessage('ext-proc-14'), 'full', undefined, limits.textBytes);
  const end = entriesOf('/inject')[1];
  expect(facts.requestStartMs).toBeCloseTo(end?.startMs ?? 0, 3);
  expect(facts.traceparent).toBe(end?.tags.traceparent);
  expect(processingMessage('ext-proc-13')).toMatchObject({ kind: 'requestHeaders', observability: false });
});
