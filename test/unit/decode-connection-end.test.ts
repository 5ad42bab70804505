import { describe, expect, test } from 'vitest';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
import { readRecording, recordedCases } from '../support/recordings.ts';
import { limits, reference } from '../support/wire.ts';

const whole = { time_to_last_upstream_tx_byte: { nanos: 1 }, time_to_last_upstream_rx_byte: { nanos: 2 } };
const http1 = { connection_id: '7', upstream_protocol: 'HTTP/1.1' };
const http2 = { connection_id: '7', upstream_protocol: 'HTTP/2' };

function endOf(access_log_type: string, common: object, custom_tags: object = http1) {
  const entry = { common_properties: { access_log_type, custom_tags, ...common } };
  const logs = access_log_type.startsWith('Tcp')
    ? { tcp_logs: { log_entry: [entry] } }
    : { http_logs: { log_entry: [entry] } };
  const result = decodeLogMessage(reference.logMessage.serialize(logs), limits);
  if (!result.ok) throw new Error(result.error.text);
  const [{ closesConnection, closedBy } = {}] = result.message.entries;
  return { closesConnection, closedBy };
}

const notClosed = { closesConnection: false, closedBy: undefined };
const closed = (closedBy: string | undefined) => ({ closesConnection: true, closedBy });

test('an attempt that was had to its end leaves its connection open', () => {
  expect(endOf('UpstreamEnd', whole)).toEqual(notClosed);
  expect(endOf('UpstreamEnd', whole, http2)).toEqual(notClosed);
});

test.each([
  ['close', closed('server')],
  ['Close', closed('server')],
  ['foo, close', closed('server')],
  ['keep-alive', notClosed],
  ['closed', notClosed],
  ['', notClosed],
])('a response over HTTP/1 that says `connection: %s`', (response_connection, end) => {
  expect(endOf('UpstreamEnd', whole, { ...http1, response_connection })).toEqual(end);
});

test('over HTTP/2 that header closes nothing', () => {
  expect(endOf('UpstreamEnd', whole, { ...http2, response_connection: 'close' })).toEqual(notClosed);
});

test.each(['time_to_last_upstream_tx_byte', 'time_to_last_upstream_rx_byte'])('without %s', (missing) => {
  const common = { ...whole, [missing]: null };
  expect(endOf('UpstreamEnd', common)).toEqual(closed('envoy'));
  expect(endOf('UpstreamEnd', common, { ...http1, upstream_protocol: 'HTTP/1.0' })).toEqual(closed('envoy'));
  expect(endOf('UpstreamEnd', common, http2)).toEqual(notClosed);
  // Config version 1 does not say the protocol.
  expect(endOf('UpstreamEnd', common, { connection_id: '7' })).toEqual(notClosed);
});

test('the server that terminates a connection closed it, whatever the protocol', () => {
  const response_flags = { upstream_connection_termination: true };
  for (const tags of [http1, http2, { connection_id: '7' }]) {
    expect(endOf('UpstreamEnd', { response_flags }, tags)).toEqual(closed('server'));
  }
});

test('who ended a connection with a protocol error is not known', () => {
  expect(endOf('UpstreamEnd', { response_flags: { upstream_protocol_error: true } })).toEqual(closed(undefined));
});

test.each([
  [{ upstream_remote_reset: true }, closed('server')],
  [{ duration_timeout: true }, closed('envoy')],
  [{}, closed(undefined)],
])('the end of a TCP connection with the flags %j', (response_flags, end) => {
  expect(endOf('TcpConnectionEnd', { response_flags }, { connection_id: '7' })).toEqual(end);
});

test('without an upstream connection nothing was closed', () => {
  for (const connection_id of ['0', '-', undefined]) {
    const tags = connection_id === undefined ? {} : { connection_id };
    expect(endOf('TcpConnectionEnd', { response_flags: { upstream_connection_failure: true } }, tags)).toEqual(
      notClosed,
    );
    expect(endOf('UpstreamEnd', {}, { upstream_protocol: 'HTTP/1.1', ...tags })).toEqual(notClosed);
  }
});

test.each(['UpstreamPeriodic', 'UpstreamPoolReady', 'DownstreamEnd', 'TcpPeriodic', 'TcpUpstreamConnected'])(
  'an entry of type %s closes nothing',
  (type) => {
    expect(endOf(type, {})).toEqual(notClosed);
  },
);

/** Of the connections that a recorded Envoy told of, how many it closed with an entry, by whom, and its own count. */
function closedIn(version: string, name: string) {
  const { connections, messages } = readRecording(name, version);
  const ids = new Set<string>();
  const closers = new Map<string, string>();
  for (const { bytes } of messages) {
    const result = decodeLogMessage(Buffer.from(bytes, 'base64'), limits);
    if (!result.ok) throw new Error(result.error.text);
    for (const { type, tags, closesConnection, closedBy } of result.message.entries) {
      if (tags.connectionId === undefined || type === 'downstream_end') continue;
      ids.add(tags.connectionId);
      if (closesConnection) closers.set(tags.connectionId, closedBy ?? 'not known');
    }
  }
  return { open: ids.size - closers.size, closers: [...closers.values()], connections };
}

const recordings = ['1.40', '1.37'].flatMap((version) =>
  recordedCases(version).map((name): [version: string, name: string] => [version, name]),
);
/** Envoy closed an idle one, and said nothing. */
const silent = 'max-connection-duration';

describe('the connections that the entries leave open are those that Envoy has', () => {
  test.each(recordings.filter(([, name]) => name !== silent))('Envoy %s, %s', (version, name) => {
    const { open, connections, closers } = closedIn(version, name);
    expect(open).toBe(connections.active);
    const count = (closer: string) => closers.filter((each) => each === closer).length;
    // `connection: close`: it is Envoy that closes, as the server wants it.
    const [byEnvoy, byServer] = name === 'connection-close' ? ['server', 'envoy'] : ['envoy', 'server'];
    expect(count(byEnvoy)).toBeLessThanOrEqual(connections.destroyedByEnvoy);
    expect(count(byServer)).toBeLessThanOrEqual(connections.destroyedByServer);
  });

  test(`but for one that it closes while it is idle: of that, no entry tells`, () => {
    expect(closedIn('1.40', silent)).toEqual({
      open: 1,
      closers: [],
      connections: { active: 0, destroyedByEnvoy: 1, destroyedByServer: 0 },
    });
  });
});

describe.each([
  ['1.40', 'tcp-max-duration', ['envoy']],
  ['1.40', 'tcp-reset-by-upstream', ['server']],
  // Envoy 1.37 has no flag for it.
  ['1.37', 'tcp-reset-by-upstream', ['not known']],
  ['1.40', 'tcp-reset-by-client', ['not known']],
  ['1.40', 'tcp-idle-timeout', ['not known']],
  ['1.40', 'tcp-connection', ['not known']],
  ['1.40', 'tcp-closed-by-upstream', ['not known']],
  ['1.40', 'connection-close', ['server']],
  ['1.40', 'reset-before-headers-not-retried', ['server']],
  ['1.40', 'reset-before-headers-http2', []],
  ['1.40', 'die-in-body', ['not known']],
  ['1.40', 'protocol-error', ['not known']],
  ['1.40', 'client-abort-http1-in-body', ['envoy']],
  ['1.40', 'status-503-retried', ['envoy']],
  ['1.40', 'websocket-ended-by-upstream', ['server']],
  ['1.40', 'websocket-ended-by-client', ['envoy']],
])('Envoy %s, %s', (version, name, by) => {
  test(`closed by: ${by.join() || 'nobody'}`, () => {
    expect(closedIn(version, name).closers).toEqual(by);
  });
});
