import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, credentials, loadPackageDefinition, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterEach, expect, test, vi } from 'vitest';
import { firstLog, processBytes, TestIngress } from '../support/ingress.ts';
import { recorded } from '../support/wire.ts';

let open: TestIngress | undefined;
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await open?.close();
});

async function start(): Promise<TestIngress> {
  open = await TestIngress.start();
  return open;
}

const healthProto = new URL('../../proto/grpc/health/v1/health.proto', import.meta.url).pathname;
const health = (
  loadPackageDefinition(loadSync(healthProto, { enums: String, defaults: true })) as unknown as {
    grpc: { health: { v1: { Health: ServiceClientConstructor } } };
  }
).grpc.health.v1.Health;

// biome-ignore lint/suspicious/noExplicitAny: a client whose methods grpc-js adds at run time.
function healthClient(port: number): any /* oxlint-disable-line typescript/no-explicit-any */ {
  const client = new health(`127.0.0.1:${port}`, credentials.createInsecure());
  clients.push(client);
  return client;
}

function check(port: number, service = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    healthClient(port).Check({ service }, (error: Error | null, answer: { status: string }) =>
      error === null ? resolve(answer.status) : reject(error),
    );
  });
}

test('health is NOT_SERVING until it is told otherwise, for the server and for each service', async () => {
  const { ingress, port } = await start();
  expect(await check(port)).toBe('NOT_SERVING');
  ingress.setServing(true);
  expect(await check(port)).toBe('SERVING');
  expect(await check(port, 'envoy.service.ext_proc.v3.ExternalProcessor')).toBe('SERVING');
  expect(await check(port, 'envoy.service.accesslog.v3.AccessLogService')).toBe('SERVING');
  await expect(check(port, 'other')).rejects.toMatchObject({ code: 5 });
});

test('a watch hears of each change, and its end at a drain', async () => {
  const { ingress, port } = await start();
  const call = healthClient(port).Watch({ service: '' });
  const heard: string[] = [];
  const ended = new Promise<number>((resolve) => call.on('status', ({ code }: { code: number }) => resolve(code)));
  call.on('data', ({ status }: { status: string }) => heard.push(status));
  await vi.waitFor(() => expect(heard).toEqual(['NOT_SERVING']));
  ingress.setServing(true);
  ingress.setServing(true);
  await vi.waitFor(() => expect(heard).toEqual(['NOT_SERVING', 'SERVING']));
  await ingress.drain(2000);
  expect(await ended).toBe(0);
  expect(heard).toEqual(['NOT_SERVING', 'SERVING', 'NOT_SERVING']);
});

test('a watch of an unknown service hears that', async () => {
  const { port } = await start();
  const call = healthClient(port).Watch({ service: 'other' });
  const status = await new Promise((resolve) =>
    call.once('data', (answer: { status: string }) => resolve(answer.status)),
  );
  expect(status).toBe('SERVICE_UNKNOWN');
});

test('a drain ends log streams with OK, lets a request under way finish, and takes no new connection', async () => {
  const running = await start();
  const log = running.logStream();
  const process = running.processStream();
  log.call.write(firstLog(['/a']));
  process.call.write(processBytes({ request_headers: {} }));
  await vi.waitFor(() => expect([running.sink.received.length, process.answers.length]).toEqual([1, 1]));

  const drained = running.ingress.drain(5000);
  expect((await log.status).code).toBe(0);
  await expect(check(running.port)).rejects.toMatchObject({ code: 14 });
  process.call.write(recorded('ext-proc-04'));
  await vi.waitFor(() => expect(process.answers).toHaveLength(2));
  process.call.end();
  expect(await process.status).toBe(0);
  await drained;
  expect(running.events).toMatchObject({ 'closed access_log': 1, 'closed ext_proc': 1 });
  expect(running.sink.closedIds).toEqual([1]);
});

test('what is still open after the grace is cut', async () => {
  const running = await start();
  const stuck = running.processStream();
  stuck.call.write(processBytes({ request_headers: {} }));
  await vi.waitFor(() => expect(stuck.answers).toHaveLength(1));
  await running.ingress.drain(100);
  expect(await stuck.status).not.toBe(0);
  await vi.waitFor(() => expect(running.events).toMatchObject({ 'closed ext_proc': 1 }));
});

test('an address that is taken rejects with what and why', async () => {
  const running = await start();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${(server.address() as { port: number }).port}`;
  try {
    await expect(running.ingress.bind(address)).rejects.toMatchObject({
      code: 'listen_failed',
      message: expect.stringContaining(address),
    });
  } finally {
    server.close();
  }
});

test('a peer that answers nothing any more, without a word of its end, loses its streams', async () => {
  open = await TestIngress.start({ keepaliveMs: 200 });
  const { sink, port } = open;
  const cable = await startCable(port);
  const call = open.logStream(open.clientOf(cable.port)).call;
  call.write(firstLog(['/a']));
  await vi.waitFor(() => expect(sink.streams).toHaveLength(1));
  await sleep(1000);
  expect(sink.closedIds).toEqual([]);
  cable.cut();
  await vi.waitFor(() => expect(sink.closedIds).toEqual([1]), 5000);
  cable.close();
});

/** Passes bytes both ways until it is cut: from then on none, and no end either. */
async function startCable(to: number) {
  const sockets: Socket[] = [];
  let whole = true;
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    for (const [from, into] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (chunk) => whole && into.write(chunk));
      from.on('error', () => undefined);
      sockets.push(from);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      whole = false;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
