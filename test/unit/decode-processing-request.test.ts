import { expect, test } from 'vitest';
import { requestFacts, responseFacts } from '../../src/decode/processing-facts.ts';
import { decodeProcessingRequest, type ProcessingMessage } from '../../src/decode/processing-request.ts';
import { limits, reference, struct } from '../support/wire.ts';

const attributes = (values: Record<string, string | number | boolean>) => ({
  'envoy.filters.http.ext_proc': struct(values),
});
const bytesOf = (request: object): Buffer => reference.processingRequest.serialize(request);

function decoded(request: object): ProcessingMessage {
  const result = decodeProcessingRequest(bytesOf(request), limits);
  if (!result.ok) throw new Error(result.error.text);
  return result.message;
}

function facts(values: Record<string, string | number | boolean>, headers: object[] = []) {
  const request = { response_headers: { headers: { headers } }, attributes: attributes(values) };
  return responseFacts(decoded(request), 'tag', undefined, limits.textBytes);
}

test.each([
  ['request_headers', 'requestHeaders'],
  ['response_headers', 'responseHeaders'],
  ['request_body', 'requestBody'],
  ['response_body', 'responseBody'],
  ['request_trailers', 'requestTrailers'],
  ['response_trailers', 'responseTrailers'],
])('%s is the kind %s', (field, kind) => {
  expect(decoded({ [field]: {} }).kind).toBe(kind);
});

test('a message of no known kind cannot be answered', () => {
  expect(decodeProcessingRequest(bytesOf({ observability_mode: true }), limits)).toMatchObject({
    ok: false,
    kind: undefined,
    observability: true,
    error: { reason: 'malformed' },
  });
});

test('a response phase about which nothing is said', () => {
  expect(facts({})).toEqual({
    profile: 'tag',
    reporter: { kind: 'envoy', workload: 'envoy', namespace: '', pod: '', nodeId: '', envoyVersion: '' },
    key: undefined,
    cluster: undefined,
    route: undefined,
    upstream: undefined,
    attemptCount: undefined,
    code: undefined,
    codeDetails: undefined,
    flags: [],
    requestStartMs: undefined,
    connectionId: undefined,
    connectionAgeMs: undefined,
    method: undefined,
    path: undefined,
    authority: undefined,
    traceparent: undefined,
    debugSecret: undefined,
    injected: undefined,
  });
});

test('attributes of the wrong type are absent', () => {
  expect(facts({ 'response.code': '200', 'xds.cluster_name': 5, 'response.flags': 'UF' })).toMatchObject({
    code: undefined,
    cluster: undefined,
    flags: [],
  });
});

test.each([
  ['10.0.0.7:8080', 'ip', '10.0.0.7'],
  ['[fd00::7]:8080', 'ip', 'fd00::7'],
  ['/run/app.sock', 'pipe', undefined],
  ['envoy://connect_originate/10.0.0.7:8080', 'internal', '10.0.0.7'],
])('upstream.address %s is a place of kind %s', (text, kind, ip) => {
  expect(facts({ 'upstream.address': text }).upstream).toMatchObject({ text, kind, ip });
});

// Envoy 1.40 counts the try that found no host or no room. test/e2e/tags.test.ts
test.each([
  ['no_healthy_upstream', 1, 0, undefined],
  ['no_healthy_upstream', 2, 1, '10.0.0.7:8080'],
  ['upstream_reset_before_response_started{overflow}', 1, 0, undefined],
  ['upstream_reset_before_response_started{overflow|pool}', 3, 2, '10.0.0.7:8080'],
  ['upstream_reset_before_response_started{remote_connection_failure|…}', 3, 3, '10.0.0.7:8080'],
  ['upstream_reset_before_response_started{overflowing}', 1, 1, '10.0.0.7:8080'],
  ['via_upstream', 2, 2, '10.0.0.7:8080'],
  ['direct_response', 0, 0, '10.0.0.7:8080'],
])('with details %s of %i tries %i reached %s', (details, count, attemptCount, text) => {
  const { upstream, ...rest } = facts({
    'response.code_details': details,
    'upstream.request_attempt_count': count,
    'upstream.address': '10.0.0.7:8080',
  });
  expect([rest.attemptCount, upstream?.text]).toEqual([attemptCount, text]);
});

test('the connection is read from headers or from attributes', () => {
  const header = (key: string, value: string) => ({ key, raw_value: Buffer.from(value) });
  const asHeaders = facts({}, [
    header('x-sidelight-internal-connection-id', '12'),
    header('x-sidelight-internal-connection-age-us', '1500'),
  ]);
  expect(asHeaders).toMatchObject({ connectionId: '12', connectionAgeMs: 1.5 });
  const asAttributes = facts({
    "response.headers['x-sidelight-internal-connection-id']": '12',
    "response.headers['x-sidelight-internal-connection-age-us']": '1500',
  });
  expect(asAttributes).toMatchObject({ connectionId: '12', connectionAgeMs: 1.5 });
});

test.each([
  ['via_upstream', '12'],
  [undefined, '12'],
  ['upstream_reset_before_response_started{connection_termination}', undefined],
])('through a tunnel there is a connection where something came back: details %s', (details, connectionId) => {
  const values = {
    'upstream.address': 'envoy://connect_originate/10.0.0.7:8080',
    ...(details === undefined ? {} : { 'response.code_details': details }),
    "response.headers['x-sidelight-internal-connection-id']": '12',
    "response.headers['x-sidelight-internal-connection-age-us']": '20',
  };
  expect(facts(values).connectionId).toBe(connectionId);
  expect(facts(values).connectionAgeMs).toBe(connectionId && 0.02);
});

test('a response header named as a request header is not believed to be one', () => {
  expect(facts({}, [{ key: 'x-sidelight-debug', value: 'guess' }]).debugSecret).toBeUndefined();
  expect(facts({ "request.headers['x-sidelight-debug']": 's' }).debugSecret).toBe('s');
});

test('the listener’s direction makes a sidecar inbound, whatever the cluster', () => {
  const values = { 'xds.node.id': 'sidecar~10.0.0.5~p.n~d', 'xds.listener_direction': 1 };
  expect(facts(values).reporter.kind).toBe('sidecar_inbound');
});

test('the workload comes from the attributes of the node', () => {
  const workload = (values: Record<string, string>) => facts({ 'xds.node.id': 'n1', ...values }).reporter.workload;
  expect(workload({ 'xds.node.cluster': 'c1', "xds.node.metadata['WORKLOAD_NAME']": 'shop' })).toBe('shop');
  expect(workload({ 'xds.node.cluster': 'c1' })).toBe('c1');
  expect(workload({})).toBe('n1');
});

test('two traceparent headers are one that is not valid', () => {
  const headers = ['a', 'b'].map((value) => ({ key: 'traceparent', raw_value: Buffer.from(value) }));
  const message = decoded({ request_headers: { headers: { headers } } });
  expect(requestFacts(message, 'full')).toEqual({ profile: 'full', traceparent: 'a,b' });
});

test('the request’s traceparent is read from the attribute too', () => {
  const message = decoded({ request_headers: {}, attributes: attributes({ "request.headers['traceparent']": 't' }) });
  expect(requestFacts(message, 'full').traceparent).toBe('t');
});

// Field 11, protocol_config {request_body_mode: N}: the reference is older than it.
test.each([
  [1, []],
  [3, []],
  [4, ['requestBody']],
  [5, ['requestBody']],
])('with request body mode %i Envoy does not keep %j', (mode, bodiesNotKept) => {
  const bytes = Buffer.concat([bytesOf({ request_headers: {} }), Buffer.from([0x5a, 0x02, 0x08, mode])]);
  expect(decodeProcessingRequest(bytes, limits)).toMatchObject({ ok: true, message: { bodiesNotKept } });
});

test('headers and attributes over their bounds are refused, with the kind that is to be answered', () => {
  const headers = [{ key: 'abc', raw_value: Buffer.from('de') }];
  const bytes = bytesOf({ response_headers: { headers: { headers } }, attributes: attributes({ a: 1, b: 2 }) });
  const refused = (bounds: object) => decodeProcessingRequest(bytes, { ...limits, ...bounds });
  const kind = 'responseHeaders';
  expect(refused({ headerBytes: 36 })).toMatchObject({ ok: false, kind, error: { reason: 'headerBytes' } });
  expect(refused({ tagsPerEntry: 1 })).toMatchObject({ ok: false, kind, error: { reason: 'tagsPerEntry' } });
  expect(refused({ headerBytes: 37, tagsPerEntry: 2 }).ok).toBe(true);
  expect(refused({ messageBytes: 10 })).toMatchObject({
    ok: false,
    kind: undefined,
    error: { reason: 'messageBytes' },
  });
});
