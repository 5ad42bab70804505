import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import type { IngressOptions } from '../../src/ingress/server.ts';
import { firstLog, httpLogs, logBytes, TestIngress } from '../support/ingress.ts';
import { limits, recorded } from '../support/wire.ts';

const ok = 0;
const invalidArgument = 3;
const resourceExhausted = 8;

let open: TestIngress | undefined;
afterEach(async () => {
  await open?.close();
});

async function start(overrides?: Partial<IngressOptions>): Promise<TestIngress> {
  open = await TestIngress.start(overrides);
  return open;
}

const pathsOf = ({ sink }: TestIngress) => sink.received.map(({ entry }) => entry.path);

test('entries go to the sink with their stream, its reporter and the time of receipt', async () => {
  const ingress = await start();
  const { call } = ingress.logStream();
  call.write(recorded('als-01'));
  await vi.waitFor(() => expect(ingress.sink.received.length).toBeGreaterThan(10));
  expect(ingress.sink.streams).toEqual([
    {
      id: 1,
      profile: 'full',
      configVersion: 1,
      reporter: expect.objectContaining({ kind: 'sidecar_outbound', workload: 'shop', envoyVersion: '1.40.0' }),
      peer: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    },
  ]);
  expect(ingress.sink.received[0]).toMatchObject({ stream: { id: 1 }, receivedMs: 1_700_000_000_000 });
});

test('later messages need no identifier, and each stream has an id of its own', async () => {
  const ingress = await start();
  const [one, two] = [ingress.logStream(), ingress.logStream()];
  one.call.write(firstLog(['/a'], 'sidelight.full'));
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/a']));
  two.call.write(firstLog(['/b'], 'sidelight.observe.2'));
  one.call.write(logBytes(httpLogs(['/c'])));
  await vi.waitFor(() => expect(new Set(pathsOf(ingress))).toEqual(new Set(['/a', '/b', '/c'])));
  expect(ingress.sink.streams.map(({ id, profile, configVersion }) => [id, profile, configVersion])).toEqual([
    [1, 'full', 1],
    [2, 'observe', 2],
  ]);
  expect(ingress.sink.received.find(({ entry }) => entry.path === '/c')?.stream.id).toBe(1);
});

test('garbage ends its own stream with INVALID_ARGUMENT; another, on the same connection, goes on', async () => {
  const ingress = await start();
  const client = ingress.client();
  const [good, bad] = [ingress.logStream(client), ingress.logStream(client)];
  good.call.write(firstLog(['/before']));
  bad.call.write(firstLog(['/kept']));
  bad.call.write(Buffer.from('garbage, no protobuf'));
  expect((await bad.status).code).toBe(invalidArgument);
  good.call.write(logBytes(httpLogs(['/after'])));
  await vi.waitFor(() => expect(new Set(pathsOf(ingress))).toEqual(new Set(['/before', '/kept', '/after'])));
  expect(ingress.events).toMatchObject({ 'decodeError access_log': 1, 'opened access_log': 2 });
  await vi.waitFor(() => expect(ingress.sink.closedIds).toEqual([2]));
});

test.each([
  ['a log name that is not ours', firstLog([], 'other.log'), 'unknown_profile', /log_name: found "other.log"/],
  [
    'a log name with half a character',
    firstLog([], '\ud800'.repeat(200)),
    'unknown_profile',
    /expected sidelight.full/,
  ],
  ['a version that no config of ours has', firstLog([], 'sidelight.full.02'), 'unknown_profile', /sidelight.full.2$/],
  ['no identifier', logBytes(httpLogs(['/x'])), 'no_identifier', /no identifier/],
])('%s is refused with INVALID_ARGUMENT and its reason', async (_, bytes, reason, details) => {
  const ingress = await start();
  const { call, status } = ingress.logStream();
  call.write(bytes);
  expect(await status).toEqual({ code: invalidArgument, details: expect.stringMatching(details) });
  expect(ingress.events).toMatchObject({ [`refused access_log ${reason}`]: 1 });
  expect(ingress.sink).toMatchObject({ streams: [], received: [], closedIds: [] });
});

test('a message over its bound ends its stream and is counted', async () => {
  const ingress = await start({ limits: { ...limits, messageBytes: 1000, logStreams: 9, processStreams: 9 } });
  const { call, status } = ingress.logStream();
  call.write(firstLog(['/x'.repeat(600)]));
  expect((await status).code).toBe(resourceExhausted);
  expect(ingress.events).toMatchObject({ 'refused access_log messageBytes': 1 });
});

test('entries with too many tags are counted one by one', async () => {
  const ingress = await start({ limits: { ...limits, tagsPerEntry: 1, logStreams: 9, processStreams: 9 } });
  const { call } = ingress.logStream();
  const log_entry = [0, 1, 2].map(() => ({ common_properties: { custom_tags: { a: '1', b: '2' } } }));
  call.write(firstLog(['/good']));
  call.write(logBytes({ http_logs: { log_entry } }));
  await vi.waitFor(() => expect(ingress.events).toMatchObject({ 'refused access_log tagsPerEntry': 3 }));
  expect(pathsOf(ingress)).toEqual(['/good']);
});

test('one stream too many is refused, and taken again when another has ended', async () => {
  const ingress = await start({ limits: { ...limits, logStreams: 1, processStreams: 9 } });
  const first = ingress.logStream();
  first.call.write(firstLog(['/one']));
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/one']));
  expect((await ingress.logStream().status).code).toBe(resourceExhausted);
  expect(ingress.events).toMatchObject({ 'refused access_log too_many_streams': 1 });
  first.call.end();
  expect((await first.status).code).toBe(ok);
  await vi.waitFor(() => expect(ingress.sink.closedIds).toEqual([1]));
  ingress.logStream().call.write(firstLog(['/two']));
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/one', '/two']));
});

test('a stream that is old ends with OK right after its next message', async () => {
  const ingress = await start({ logStreamMaxAgeMs: 20 });
  const { call, status } = ingress.logStream();
  call.write(firstLog(['/young']));
  await sleep(100);
  expect(ingress.sink.closedIds).toEqual([]);
  call.write(logBytes(httpLogs(['/old'])));
  expect((await status).code).toBe(ok);
  expect(pathsOf(ingress)).toEqual(['/young', '/old']);
  await vi.waitFor(() => expect(ingress.sink.closedIds).toEqual([1]));
});

test('a stream that is old and silent stays: Envoy would open none before its next entry', async () => {
  const ingress = await start({ logStreamMaxAgeMs: 20 });
  const { call, status } = ingress.logStream();
  call.write(firstLog(['/only']));
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/only']));
  await sleep(2000);
  expect(ingress.sink.closedIds).toEqual([]);
  await ingress.ingress.drain(2000);
  expect((await status).code).toBe(ok);
  expect(ingress.sink.closedIds).toEqual([1]);
});

test('a stream that never said who it is ends with OK at its age: it holds a place for nothing', async () => {
  const ingress = await start({ logStreamMaxAgeMs: 20 });
  const { status } = ingress.logStream();
  expect((await status).code).toBe(ok);
});

test('a sink that is full holds its stream back, and no other', async () => {
  const ingress = await start();
  const full = Promise.withResolvers<void>();
  const slow = ingress.logStream();
  ingress.sink.wait = () => full.promise;
  slow.call.write(firstLog(['/1']));
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/1']));
  ingress.sink.wait = () => undefined;
  slow.call.write(logBytes(httpLogs(['/2'])));
  ingress.logStream().call.write(firstLog(['/other']));
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/1', '/other']));
  full.resolve();
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/1', '/other', '/2']));
});

test('a sink that throws or rejects is counted, and the stream goes on', async () => {
  const ingress = await start();
  const { call } = ingress.logStream();
  ingress.sink.wait = () => {
    throw new Error('thrown');
  };
  call.write(firstLog(['/1']));
  await vi.waitFor(() => expect(ingress.events).toMatchObject({ 'internalError access_log': 1 }));
  ingress.sink.wait = () => Promise.reject(new Error('rejected'));
  call.write(logBytes(httpLogs(['/2'])));
  await vi.waitFor(() => expect(ingress.events).toMatchObject({ 'internalError access_log': 2 }));
  ingress.sink.wait = () => undefined;
  call.write(logBytes(httpLogs(['/3'])));
  await vi.waitFor(() => expect(pathsOf(ingress)).toEqual(['/1', '/2', '/3']));
});

test('a client that goes away closes its stream', async () => {
  const ingress = await start();
  const { call } = ingress.logStream();
  call.write(firstLog(['/1']));
  await vi.waitFor(() => expect(ingress.sink.streams).toHaveLength(1));
  call.cancel();
  await vi.waitFor(() => expect(ingress.sink.closedIds).toEqual([1]));
  expect(ingress.events).toMatchObject({ 'closed access_log': 1 });
});
