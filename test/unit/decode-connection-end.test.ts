import { expect, test } from 'vitest';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
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
