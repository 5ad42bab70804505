import { expect, test } from 'vitest';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import { limits, reference, struct } from '../support/wire.ts';

function decoded(message: object, bounds = limits) {
  const result = decodeLogMessage(reference.logMessage.serialize(message), bounds);
  if (!result.ok) throw new Error(result.error.text);
  return result.message;
}

function httpEntry(common: object, rest: object = {}): LogEntry | undefined {
  return decoded({ http_logs: { log_entry: [{ common_properties: common, ...rest }] } }).entries[0];
}

test('an empty entry is an entry about which nothing is known', () => {
  expect(httpEntry({})).toEqual({
    layer: 'http',
    type: 'not_set',
    key: undefined,
    startMs: undefined,
    durationMs: undefined,
    firstUpstreamTxMs: undefined,
    firstUpstreamRxMs: undefined,
    cluster: undefined,
    route: undefined,
    upstream: undefined,
    downstreamRemote: undefined,
    flags: [],
    code: undefined,
    codeDetails: undefined,
    transportFailure: undefined,
    closesConnection: false,
    closedBy: undefined,
    attemptCount: undefined,
    bytesSent: 0,
    bytesReceived: 0,
    method: undefined,
    scheme: undefined,
    authority: undefined,
    path: undefined,
    protocol: undefined,
    requestId: undefined,
    tags: {
      connectionId: undefined,
      connectionAgeMs: undefined,
      traceparent: undefined,
      envoyTraceId: undefined,
      envoySpanId: undefined,
      grpcStatus: undefined,
      isGrpc: false,
      attemptCountHeader: undefined,
      injected: undefined,
    },
  });
});

test('a response code 0 is none', () => {
  expect(httpEntry({}, { response: { response_code: { value: 0 } } })?.code).toBeUndefined();
});

test.each(['0', '-', ''])('the connection id %j is none', (connection_id) => {
  expect(httpEntry({ custom_tags: { connection_id } })?.tags.connectionId).toBeUndefined();
});

test.each([
  ['application/grpc', '14', 14],
  ['application/grpc+proto', '0', 0],
  ['application/grpc-web', '2', undefined],
  ['text/html', '2', undefined],
  ['application/grpc', '-', undefined],
])('with content type %s the status tag %s is read as %s', (content_type, grpc_status, status) => {
  expect(httpEntry({ custom_tags: { content_type, grpc_status } })?.tags.grpcStatus).toBe(status);
});

test('the cluster is that of the host, else, where there was none, the one that was chosen', () => {
  expect(httpEntry({ upstream_cluster: 'host', custom_tags: { cluster: 'chosen' } })?.cluster).toBe('host');
  expect(httpEntry({ custom_tags: { cluster: 'chosen' } })?.cluster).toBe('chosen');
});

test('the ids that the tagger put in come back out of the dynamic metadata', () => {
  const sidelight = struct({ trace_id: 't', span_id: 's', parent_span_id: 'p', sampled: true, cluster: 'app' });
  expect(httpEntry({ metadata: { filter_metadata: { sidelight } } })?.tags.injected).toEqual({
    traceId: 't',
    spanId: 's',
    parentSpanId: 'p',
    sampled: true,
  });
});

test.each([{ seconds: 9_000_000_000_000 }, { seconds: -1 }])(
  'an impossible duration (%o) is none: it would spoil every sum',
  (duration) => {
    expect(httpEntry({ duration })?.durationMs).toBeUndefined();
  },
);

test('tags of a response alone are no injected context', () => {
  const sidelight = struct({ cluster: 'app', attempts: 1 });
  expect(httpEntry({ metadata: { filter_metadata: { sidelight } } })?.tags.injected).toBeUndefined();
});

test('without a remote address the direct one tells that there is a client', () => {
  const direct = { socket_address: { address: '10.0.0.9', port_value: 5 } };
  expect(httpEntry({ downstream_direct_remote_address: direct })?.downstreamRemote?.text).toBe('10.0.0.9:5');
});

test.each([
  ['UdpPeriodic', 'not_set'],
  ['UpstreamPoolReady', 'upstream_pool_ready'],
  ['DownstreamPeriodic', 'downstream_periodic'],
])('the type %s is %s', (access_log_type, type) => {
  expect(httpEntry({ access_log_type })?.type).toBe(type);
});

test('label texts are cut, keys are not', () => {
  const key = 'k'.repeat(100);
  const message = {
    http_logs: { log_entry: [{ common_properties: { route_name: 'r'.repeat(100), custom_tags: { key } } }] },
  };
  expect(decoded(message, { ...limits, textBytes: 16 }).entries[0]).toMatchObject({ key, route: 'r'.repeat(16) });
});

test('an entry with too many tags is left out and counted, the others stay', () => {
  const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`t${index}`, 'x']));
  const log_entry = [3, 2, 4].map((count) => ({
    common_properties: { custom_tags: tags(count), route_name: `${count}` },
  }));
  const message = decoded({ http_logs: { log_entry } }, { ...limits, tagsPerEntry: 2 });
  expect(message.refusedEntries).toBe(2);
  expect(message.entries.map((entry) => entry.route)).toEqual(['2']);
});

test('a message over its bound is refused unread, one at it is not', () => {
  const bytes = reference.logMessage.serialize({ identifier: { log_name: 'sidelight.full' } });
  expect(decodeLogMessage(bytes, { ...limits, messageBytes: bytes.length }).ok).toBe(true);
  expect(decodeLogMessage(bytes, { ...limits, messageBytes: bytes.length - 1 })).toMatchObject({
    ok: false,
    error: { reason: 'messageBytes' },
  });
});

test('bytes that are no message are refused', () => {
  expect(decodeLogMessage(Buffer.from('not a protobuf'), limits)).toMatchObject({
    ok: false,
    error: { reason: 'malformed' },
  });
});
