import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
import { responseFacts } from '../../src/decode/processing-facts.ts';
import { decodeProcessingRequest } from '../../src/decode/processing-request.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import { limits, recorded, reference, struct } from '../support/wire.ts';

function decodeBoth(bytes: Uint8Array): void {
  const log = decodeLogMessage(bytes, limits);
  expect(typeof log.ok).toBe('boolean');
  const processing = decodeProcessingRequest(bytes, limits);
  if (processing.ok) responseFacts(processing.message, 'full', undefined, limits.textBytes);
}

test('no bytes make a decoder throw', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), decodeBoth), { numRuns: 2000 });
});

// The messages without the list of extensions: short, so that most mutations hit something that is read.
const seeds = ['als-03', 'ext-proc-01', 'ext-proc-08', 'ext-proc-12', 'ext-proc-14'].map(recorded);
const mutation = fc.record({ at: fc.nat(), remove: fc.nat({ max: 4 }), insert: fc.uint8Array({ maxLength: 4 }) });

test('no mutation of a real message makes a decoder throw', () => {
  const mutated = fc.tuple(fc.constantFrom(...seeds), fc.array(mutation, { minLength: 1, maxLength: 5 }));
  fc.assert(
    fc.property(mutated, ([seed, mutations]) => {
      let bytes: Buffer = seed;
      for (const { at, remove, insert } of mutations) {
        const start = at % (bytes.length + 1);
        bytes = Buffer.concat([bytes.subarray(0, start), insert, bytes.subarray(start + remove)]);
      }
      expect(() => decodeBoth(bytes)).not.toThrow();
    }),
    { numRuns: 3000 },
  );
});

test('a message nested deeper than any stack is refused', () => {
  // Field 5 of a Value, struct_value, around field 1 of a Struct, and so on.
  let value: Buffer = Buffer.from([0x20, 0x01]);
  const wrapped = (tag: number, inner: Buffer): Buffer =>
    Buffer.concat([Buffer.from([tag]), varint(inner.length), inner]);
  for (let depth = 0; depth < 2000; depth++) {
    value = wrapped(0x2a, wrapped(0x0a, Buffer.concat([Buffer.from([0x0a, 0x01, 0x61]), wrapped(0x12, value)])));
  }
  const attributes = Buffer.concat([
    Buffer.from([0x0a, 0x01, 0x61]),
    wrapped(0x12, wrapped(0x0a, wrapped(0x12, value))),
  ]);
  const bytes = Buffer.concat([Buffer.from([0x1a, 0x00]), wrapped(0x4a, attributes)]);
  expect(decodeProcessingRequest(bytes, limits)).toMatchObject({ ok: false, error: { reason: 'malformed' } });
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

const text = fc.string({ minLength: 1, maxLength: 40, unit: 'binary' });
const time = fc.record({ seconds: fc.nat({ max: 4_000_000_000 }), nanos: fc.nat({ max: 999_999_999 }) });
const address = fc.ipV4().map((ip) => ({ socket_address: { address: ip, port_value: 8080 } }));
const common = fc.record(
  {
    start_time: time,
    duration: time,
    time_to_first_upstream_tx_byte: time,
    time_to_first_upstream_rx_byte: time,
    upstream_cluster: text,
    route_name: text,
    upstream_remote_address: address,
    downstream_remote_address: address,
    upstream_transport_failure_reason: text,
    upstream_request_attempt_count: fc.integer({ min: 1, max: 9 }),
    response_flags: fc.record({ upstream_connection_failure: fc.boolean(), downstream_remote_reset: fc.boolean() }),
    access_log_type: fc.constantFrom('DownstreamEnd', 'UpstreamEnd', 'TcpPeriodic'),
    custom_tags: fc.record({ key: text, traceparent: text }),
    // Fields of Envoy's that Sidelight does not read must not disturb those that it reads.
    stream_id: text,
    sample_rate: fc.double({ min: 0, max: 1, noNaN: true }),
    upstream_wire_bytes_sent: fc.nat(),
    filter_state_objects: fc.constant({ x: { type_url: 't', value: Buffer.from('v') } }),
  },
  { requiredKeys: [] },
);
const httpRequest = fc.record(
  {
    request_method: fc.constantFrom('GET', 'POST', 'PATCH'),
    authority: text,
    path: text,
    request_id: text,
    request_body_bytes: fc.nat(),
    user_agent: text,
    request_headers: fc.dictionary(text, text, { maxKeys: 3 }),
  },
  { requiredKeys: [] },
);
const response = fc.record(
  {
    response_code: fc.record({ value: fc.integer({ min: 100, max: 599 }) }),
    response_body_bytes: fc.nat(),
    response_code_details: text,
  },
  { requiredKeys: [] },
);

test('a valid log message says the same as the reference decoder', () => {
  const entry = fc.record({ common_properties: common, request: httpRequest, response });
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 3 }), (log_entry) => {
      const bytes = reference.logMessage.serialize({ http_logs: { log_entry } });
      const result = decodeLogMessage(bytes, limits);
      const expected = reference.logMessage.deserialize(bytes).http_logs.log_entry;
      expect(result.ok && result.message.entries.map(inEnvoysWords)).toEqual(expected.map(whatIsRead));
    }),
    { numRuns: 300 },
  );
});

const noFlags = { UF: false, DR: false };
/** A duration of over a hundred days is taken for none. */
const durationOf = (value: Parameters<typeof msOf>[0]) => {
  const ms = msOf(value);
  return ms !== undefined && ms >= 0 && ms <= 8_640_000_000 ? ms : undefined;
};
const msOf = (value: { seconds?: number; nanos?: number } | undefined) =>
  value === undefined ? undefined : (value.seconds ?? 0) * 1000 + (value.nanos ?? 0) / 1e6;
const addressOf = (value: { socket_address: { address: string; port_value: number } } | undefined) =>
  value === undefined ? undefined : `${value.socket_address.address}:${value.socket_address.port_value}`;

function inEnvoysWords(entry: LogEntry): object {
  return {
    start_time: entry.startMs,
    duration: entry.durationMs,
    tx: entry.firstUpstreamTxMs,
    rx: entry.firstUpstreamRxMs,
    upstream_cluster: entry.cluster,
    route_name: entry.route,
    upstream: entry.upstream?.text,
    downstream: entry.downstreamRemote?.text,
    failure: entry.transportFailure,
    flags: { ...noFlags, ...Object.fromEntries(entry.flags.map((flag) => [flag, true])) },
    type: entry.type,
    key: entry.key,
    traceparent: entry.tags.traceparent,
    request_method: entry.method,
    authority: entry.authority,
    path: entry.path,
    request_id: entry.requestId,
    request_body_bytes: entry.bytesReceived,
    response_code: entry.code,
    response_body_bytes: entry.bytesSent,
    details: entry.codeDetails,
  };
}

const typeNames: Record<string, string> = {
  DownstreamEnd: 'downstream_end',
  UpstreamEnd: 'upstream_end',
  TcpPeriodic: 'tcp_periodic',
};

function whatIsRead(entry: ReturnType<typeof reference.logMessage.deserialize>): object {
  const properties = entry.common_properties ?? {};
  return {
    start_time: msOf(properties.start_time),
    duration: durationOf(properties.duration),
    tx: durationOf(properties.time_to_first_upstream_tx_byte),
    rx: durationOf(properties.time_to_first_upstream_rx_byte),
    upstream_cluster: properties.upstream_cluster,
    route_name: properties.route_name,
    upstream: addressOf(properties.upstream_remote_address),
    downstream: addressOf(properties.downstream_remote_address),
    failure: properties.upstream_transport_failure_reason,
    flags: {
      UF: properties.response_flags?.upstream_connection_failure === true,
      DR: properties.response_flags?.downstream_remote_reset === true,
    },
    type: typeNames[properties.access_log_type] ?? 'not_set',
    key: properties.custom_tags?.key,
    traceparent: properties.custom_tags?.traceparent,
    request_method: entry.request?.request_method,
    authority: entry.request?.authority,
    path: entry.request?.path,
    request_id: entry.request?.request_id,
    request_body_bytes: entry.request?.request_body_bytes ?? 0,
    response_code: entry.response?.response_code?.value,
    response_body_bytes: entry.response?.response_body_bytes ?? 0,
    details: entry.response?.response_code_details,
  };
}

test('a valid ext_proc message says the same as the reference decoder', () => {
  const value = fc.oneof(text, fc.boolean(), fc.double({ noNaN: true, noDefaultInfinity: true }));
  const names = fc.constantFrom('xds.cluster_name', 'response.code', 'request.path', 'a', '');
  const header = fc.record({ key: fc.constantFrom('x-a', 'x-b'), raw_value: text.map((raw) => Buffer.from(raw)) });
  fc.assert(
    fc.property(fc.dictionary(names, value), fc.array(header, { maxLength: 1 }), (values, headers) => {
      const bytes = reference.processingRequest.serialize({
        response_headers: { headers: { headers }, end_of_stream: true },
        attributes: { 'envoy.filters.http.ext_proc': struct(values) },
        metadata_context: { filter_metadata: { other: struct({ a: 1 }) } },
      });
      const result = decodeProcessingRequest(bytes, limits);
      const expected = reference.processingRequest.deserialize(bytes);
      if (!result.ok) throw new Error(result.error.text);
      expect(Object.fromEntries(result.message.attributes)).toEqual(plain(expected));
      const [first] = expected.response_headers.headers.headers ?? [];
      expect([...result.message.headers.values()]).toEqual(first === undefined ? [] : [first.raw_value.toString()]);
    }),
    { numRuns: 300 },
  );
});

function plain(request: ReturnType<typeof reference.processingRequest.deserialize>): object {
  const fields = request.attributes['envoy.filters.http.ext_proc'].fields ?? {};
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, Object.values(value as object)[0]]));
}
