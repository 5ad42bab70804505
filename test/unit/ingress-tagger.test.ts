import { expect, test, vi } from 'vitest';
import { createTagger, type TaggerOptions } from '../../src/ingress/tagger.ts';
import type { ResponseFacts } from '../../src/model/tag.ts';
import { current } from '../support/ingress.ts';

const facts: ResponseFacts = {
  profile: 'full',
  reporter: { kind: 'envoy', workload: 'shop', namespace: '', pod: '', nodeId: 'n1', envoyVersion: '' },
  key: '1.2',
  cluster: 'app',
  route: 'r',
  upstream: { text: '10.0.0.7:8080', kind: 'ip', ip: '10.0.0.7', port: 8080 },
  attemptCount: 3,
  code: 200,
  codeDetails: 'via_upstream',
  flags: [],
  requestStartMs: 1000,
  connectionId: '42',
  connectionAgeMs: 1500.25,
  method: 'GET',
  path: '/',
  authority: 'a',
  traceparent: undefined,
  debugSecret: undefined,
  injected: undefined,
};

function tagger(overrides: Partial<TaggerOptions> = {}) {
  return createTagger({
    responseHeaders: 'never',
    debugSecret: undefined,
    random: () => 0.5,
    injectRootSampled: () => true,
    pinOf: () => ({ ...current, pin: 'stale' }),
    tagged: () => undefined,
    ...overrides,
  });
}

const allTags = {
  cluster: 'app',
  endpoint: '10.0.0.7:8080',
  attempts: 3,
  retried: true,
  connection_id: '42',
  connection_age_ms: 1500.25,
  pin: 'stale',
  profile: 'full',
};

test('every tag is in the metadata; by default none is a header', () => {
  expect(tagger().responseHeaders(facts)).toEqual({ metadata: allTags, setHeaders: [] });
});

test('always: each tag is a header', () => {
  expect(tagger({ responseHeaders: 'always' }).responseHeaders(facts).setHeaders).toEqual([
    ['x-sidelight-cluster', 'app'],
    ['x-sidelight-endpoint', '10.0.0.7:8080'],
    ['x-sidelight-attempts', '3'],
    ['x-sidelight-retried', 'true'],
    ['x-sidelight-connection-id', '42'],
    ['x-sidelight-connection-age-ms', '1500.25'],
    ['x-sidelight-pin', 'stale'],
    ['x-sidelight-profile', 'full'],
  ]);
});

test.each([
  ['the secret', 'correct-horse-battery', 8],
  ['another secret', 'incorrect-horse-battery', 0],
  ['its beginning', 'correct-horse', 0],
  ['nothing', undefined, 0],
])('on_request: with %s there are %3$i headers', (_, debugSecret, count) => {
  const asked = tagger({ responseHeaders: 'on_request', debugSecret: 'correct-horse-battery' });
  expect(asked.responseHeaders({ ...facts, debugSecret }).setHeaders).toHaveLength(count);
});

test('on_request without a secret in the config gives headers to nobody', () => {
  const asked = tagger({ responseHeaders: 'on_request' });
  expect(asked.responseHeaders({ ...facts, debugSecret: '' }).setHeaders).toEqual([]);
});

test('never means never, whatever the request says', () => {
  const secret = tagger({ responseHeaders: 'never', debugSecret: 'correct-horse-battery' });
  expect(secret.responseHeaders({ ...facts, debugSecret: 'correct-horse-battery' }).setHeaders).toEqual([]);
});

test('a value that is no header value stays out of the headers, not out of the metadata', () => {
  const { metadata, setHeaders } = tagger({ responseHeaders: 'always' }).responseHeaders({
    ...facts,
    cluster: 'ä\r\n',
  });
  expect(metadata['cluster']).toBe('ä\r\n');
  expect(setHeaders.map(([name]) => name)).not.toContain('x-sidelight-cluster');
  expect(setHeaders).toHaveLength(7);
});

test('a local reply: what is not known is left out, the pin is unknown, and nobody is asked for it', () => {
  const pinOf = vi.fn<TaggerOptions['pinOf']>(() => current);
  const local = { ...facts, upstream: undefined, attemptCount: 0, connectionId: undefined, connectionAgeMs: undefined };
  expect(tagger({ pinOf }).responseHeaders(local).metadata).toEqual({
    cluster: 'app',
    attempts: 0,
    retried: false,
    pin: 'unknown',
    profile: 'full',
  });
  expect(pinOf).not.toHaveBeenCalled();
});

test('the pin is asked for with Envoy’s own times, and the tags are told with it', () => {
  const pinOf = vi.fn<TaggerOptions['pinOf']>(() => current);
  const tagged = vi.fn<TaggerOptions['tagged']>();
  tagger({ pinOf, tagged }).responseHeaders(facts);
  expect(pinOf).toHaveBeenCalledWith({
    cluster: 'app',
    endpoint: facts.upstream,
    nodeId: 'n1',
    connectionAgeMs: 1500.25,
    requestStartMs: 1000,
  });
  expect(tagged).toHaveBeenCalledWith(
    facts,
    expect.objectContaining({ attempts: 3, retried: true, connectionId: '42', pin: 'current' }),
    current,
  );
});

const caller = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331';

test.each([
  ['01', true],
  ['00', false],
])('inject: a caller’s trace and its sampling %s are kept, with a span of our own', (flags, sampled) => {
  const answer = tagger().requestHeaders({ profile: 'full', traceparent: `00-${caller}-${flags}` });
  expect(answer.injected).toEqual({
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: '8000000080000000',
    parentSpanId: 'b7ad6b7169203331',
    sampled,
  });
  expect(answer.setHeaders).toEqual([['traceparent', `00-0af7651916cd43dd8448eb211c80319c-8000000080000000-${flags}`]]);
  expect(answer.metadata).toEqual({
    trace_id: '0af7651916cd43dd8448eb211c80319c',
    span_id: '8000000080000000',
    parent_span_id: 'b7ad6b7169203331',
    sampled,
  });
});

test.each([
  [undefined],
  [''],
  [`00-${caller}`],
  [`00-${caller}-01-more`],
  [`ff-${caller}-01`],
  [`00-${caller.toUpperCase()}-01`],
  [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
  [`00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`],
  [`00-${caller}-01,00-${caller}-01`],
])('inject: with the traceparent %j a new trace begins', (traceparent) => {
  const answer = tagger().requestHeaders({ profile: 'full', traceparent });
  expect(answer.injected).toEqual({
    traceId: '80000000'.repeat(4),
    spanId: '8000000080000000',
    parentSpanId: undefined,
    sampled: true,
  });
  expect(answer.metadata).not.toHaveProperty('parent_span_id');
});

test('inject: whether a new trace is sampled is asked, of a caller’s trace it is not', () => {
  const injectRootSampled = vi.fn<() => boolean>(() => false);
  const asked = tagger({ injectRootSampled });
  expect(asked.requestHeaders({ profile: 'full', traceparent: undefined }).injected.sampled).toBe(false);
  expect(asked.requestHeaders({ profile: 'full', traceparent: `00-${caller}-01` }).injected.sampled).toBe(true);
  expect(injectRootSampled).toHaveBeenCalledTimes(1);
});

test('inject: a later version of traceparent is read for what version 00 has', () => {
  const { injected } = tagger().requestHeaders({ profile: 'full', traceparent: `01-${caller}-01-more` });
  expect(injected.parentSpanId).toBe('b7ad6b7169203331');
});

test('inject: an id is never all zeros', () => {
  const { injected } = tagger({ random: () => 0 }).requestHeaders({ profile: 'full', traceparent: undefined });
  expect(injected).toMatchObject({ traceId: `${'0'.repeat(31)}1`, spanId: `${'0'.repeat(15)}1` });
});
