import { afterEach, expect, test, vi } from 'vitest';
import type { IngressOptions } from '../../src/ingress/server.ts';
import { processBytes, TestIngress } from '../support/ingress.ts';
import { limits, recorded, struct } from '../support/wire.ts';

const ok = 0;

let open: TestIngress | undefined;
afterEach(async () => {
  await open?.close();
});

async function start(overrides?: Partial<IngressOptions>): Promise<TestIngress> {
  open = await TestIngress.start(overrides);
  return open;
}

const kinds = [
  'request_headers',
  'request_body',
  'request_trailers',
  'response_headers',
  'response_body',
  'response_trailers',
];

test('each message gets exactly one answer of its own kind, in order', async () => {
  const { processStream } = await start().then((ingress) => ({ processStream: ingress.processStream.bind(ingress) }));
  const { call, answers, status } = processStream();
  const sent = [...kinds, 'response_body', 'response_body'];
  for (const kind of sent) call.write(processBytes({ [kind]: {} }));
  call.end();
  expect(await status).toBe(ok);
  expect(answers.map((answer) => kinds.filter((kind) => kind in answer))).toEqual(sent.map((kind) => [kind]));
});

test('only the response headers are tagged; every other answer changes nothing', async () => {
  const ingress = await start();
  const { call, answers, status } = ingress.processStream();
  for (const kind of kinds) call.write(processBytes({ [kind]: {} }));
  call.end();
  await status;
  const tags = { fields: { sidelight: { structValue: struct({ profile: 'full' }) } } };
  expect(answers.map((answer) => answer.dynamic_metadata)).toEqual([
    undefined,
    undefined,
    undefined,
    tags,
    undefined,
    undefined,
  ]);
  expect(ingress.tagger.requests).toEqual([]);
  expect(ingress.tagger.responses).toHaveLength(1);
});

test('the real messages of one request: the facts reach the tagger', async () => {
  const ingress = await start();
  const { call, answers } = ingress.processStream({ 'x-sidelight-profile': 'tag' });
  call.write(recorded('ext-proc-07'));
  call.write(recorded('ext-proc-08'));
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  expect(ingress.tagger.responses[0]).toMatchObject({
    profile: 'tag',
    cluster: 'half',
    attemptCount: 2,
    injected: undefined,
  });
});

test('an empty POST: request headers that end the stream, and no body after them', async () => {
  const ingress = await start();
  const { call, answers } = ingress.processStream();
  call.write(recorded('ext-proc-03'));
  call.write(recorded('ext-proc-04'));
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  expect(answers[0]).toEqual({ request_headers: {} });
  expect(ingress.tagger.responses[0]).toMatchObject({ method: 'POST', path: '/empty-post', code: 200 });
});

test('a response phase with no request phase before it is tagged', async () => {
  const ingress = await start();
  const { call, answers } = ingress.processStream({ 'x-sidelight-profile': 'full', 'x-sidelight-inject': 'true' });
  call.write(recorded('ext-proc-04'));
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  expect(answers[0].dynamic_metadata.fields.sidelight).toBeDefined();
  expect(ingress.tagger.responses[0]?.injected).toBeUndefined();
});

test('inject: the request headers are answered with a traceparent, and its ids stay with the response', async () => {
  const ingress = await start();
  const { call, answers } = ingress.processStream({ 'x-sidelight-profile': 'full', 'x-sidelight-inject': 'true' });
  call.write(recorded('ext-proc-13'));
  call.write(recorded('ext-proc-14'));
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  expect(ingress.tagger.requests).toEqual([
    { profile: 'full', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
  ]);
  expect(answers[0].request_headers.response.header_mutation.set_headers).toEqual([
    {
      header: { key: 'traceparent', raw_value: Buffer.from('made-up') },
      append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
    },
  ]);
  expect(ingress.tagger.responses[0]?.injected).toMatchObject({ traceId: 't1', spanId: 's1' });
});

test('in observability mode nothing is answered, and the facts are taken all the same', async () => {
  const ingress = await start();
  const { call, answers, status } = ingress.processStream();
  for (const kind of kinds) call.write(processBytes({ [kind]: {}, observability_mode: true }));
  call.end();
  expect(await status).toBe(ok);
  expect(answers).toEqual([]);
  expect(ingress.tagger.responses).toHaveLength(1);
});

test.each([[{}], [{ 'x-sidelight-profile': 'observe' }], [{ 'x-sidelight-profile': 'FULL' }]])(
  'with the metadata %j there is no profile: answered empty and counted',
  async (headers) => {
    const ingress = await start();
    const { call, answers } = ingress.processStream(headers);
    call.write(recorded('ext-proc-04'));
    await vi.waitFor(() => expect(answers).toEqual([{ response_headers: {} }]));
    expect(ingress.events).toMatchObject({ 'refused ext_proc unknown_profile': 1, failOpen: 1 });
    expect(ingress.tagger.responses).toEqual([]);
  },
);

test.each([
  ['garbage', Buffer.from('garbage, no protobuf'), 'decodeError ext_proc'],
  ['a kind that is not known', processBytes({ metadata_context: {} }), 'decodeError ext_proc'],
])('%s ends its own stream with OK, so that the request goes on; others are served', async (_, bytes, event) => {
  const ingress = await start();
  const client = ingress.client();
  const profile = { 'x-sidelight-profile': 'full' };
  const [good, bad] = [ingress.processStream(profile, client), ingress.processStream(profile, client)];
  bad.call.write(bytes);
  expect(await bad.status).toBe(ok);
  good.call.write(recorded('ext-proc-04'));
  await vi.waitFor(() => expect(good.answers).toHaveLength(1));
  expect(ingress.events).toMatchObject({ [event]: 1, failOpen: 1 });
  expect(bad.answers).toEqual([]);
});

test('headers over their bound are answered empty: the kind is known', async () => {
  const ingress = await start({ limits: { ...limits, headerBytes: 40, logStreams: 9, processStreams: 9 } });
  const { call, answers } = ingress.processStream();
  call.write(recorded('ext-proc-04'));
  call.write(processBytes({ response_trailers: {} }));
  await vi.waitFor(() => expect(answers).toEqual([{ response_headers: {} }, { response_trailers: {} }]));
  expect(ingress.events).toMatchObject({ 'refused ext_proc headerBytes': 1, failOpen: 1 });
});

test('a message over its bound ends its stream with OK', async () => {
  const ingress = await start({ limits: { ...limits, messageBytes: 600, logStreams: 9, processStreams: 9 } });
  const { call, status } = ingress.processStream();
  call.write(recorded('ext-proc-04'));
  expect(await status).toBe(ok);
  expect(ingress.events).toMatchObject({ 'refused ext_proc messageBytes': 1, failOpen: 1 });
});

test('a body that Envoy does not keep is given back piece by piece, the other one is not', async () => {
  const ingress = await start();
  const { call, answers, status } = ingress.processStream();
  // protocol_config {request_body_mode: FULL_DUPLEX_STREAMED}: the reference is older than it.
  const fullDuplex = Buffer.from([0x5a, 0x02, 0x08, 0x04]);
  call.write(Buffer.concat([processBytes({ request_headers: {} }), fullDuplex]));
  call.write(processBytes({ request_body: { body: Buffer.from('ab'), end_of_stream: true } }));
  call.write(processBytes({ response_body: { body: Buffer.from('cd') } }));
  call.end();
  expect(await status).toBe(ok);
  // Field 3 of BodyMutation, streamed_response {body: "ab", end_of_stream: true}, is newer than the reference, too.
  const streamed = [0x1a, 0x06, 0x0a, 0x02, 0x61, 0x62, 0x10, 0x01];
  const response = [0x0a, 0x0a, 0x1a, 0x08, ...streamed];
  expect(ingress.rawAnswers.map((bytes) => [...bytes])).toEqual([
    [0x0a, 0x00],
    [0x1a, 0x0c, ...response],
    [0x22, 0x00],
  ]);
  expect(answers).toHaveLength(3);
});

test('a tagger that throws costs the tags and nothing else', async () => {
  const failing = () => {
    throw new Error('broken');
  };
  const ingress = await start({ tagger: { requestHeaders: failing, responseHeaders: failing } });
  const { call, answers } = ingress.processStream({ 'x-sidelight-profile': 'full', 'x-sidelight-inject': 'true' });
  call.write(processBytes({ request_headers: {} }));
  call.write(processBytes({ response_headers: {} }));
  await vi.waitFor(() => expect(answers).toEqual([{ request_headers: {} }, { response_headers: {} }]));
  expect(ingress.events).toMatchObject({ 'internalError ext_proc': 2 });
});

test('one stream too many is ended with OK at once, and counted', async () => {
  const ingress = await start({ limits: { ...limits, logStreams: 9, processStreams: 1 } });
  const first = ingress.processStream();
  first.call.write(processBytes({ request_headers: {} }));
  await vi.waitFor(() => expect(first.answers).toHaveLength(1));
  expect(await ingress.processStream().status).toBe(ok);
  expect(ingress.events).toMatchObject({ 'refused ext_proc too_many_streams': 1, failOpen: 1 });
  first.call.write(processBytes({ response_headers: {} }));
  await vi.waitFor(() => expect(first.answers).toHaveLength(2));
});

test('a stream that is reset is a normal end', async () => {
  const ingress = await start();
  const { call, answers } = ingress.processStream();
  call.write(recorded('ext-proc-04'));
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  call.cancel();
  await vi.waitFor(() => expect(ingress.events).toMatchObject({ 'closed ext_proc': 1 }));
  expect(ingress.events).toEqual({ 'opened ext_proc': 1, 'closed ext_proc': 1, 'message ext_proc': 1 });
});

// Node's HTTP/2 server allows 1,000 resets and then 33 a second; Envoy makes one per request.
test('thousands of resets do not cut the connection that they share', async () => {
  const ingress = await start();
  const client = ingress.client();
  const profile = { 'x-sidelight-profile': 'full' };
  const witness = ingress.logStream(client);
  for (let round = 0; round < 50; round++) {
    const streams = Array.from({ length: 50 }, () => ingress.processStream(profile, client));
    for (const { call } of streams) call.write(processBytes({ response_headers: {} }));
    await vi.waitFor(() => expect(streams.every(({ answers }) => answers.length === 1)).toBe(true));
    for (const { call } of streams) call.cancel();
    await Promise.all(streams.map(({ status }) => status));
  }
  await vi.waitFor(() => expect(ingress.events).toMatchObject({ 'closed ext_proc': 2500 }));
  witness.call.end();
  expect((await witness.status).code).toBe(ok);
}, 30_000);
