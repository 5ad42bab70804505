import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import net from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { act } from '../../src/lab/behaviour.ts';
import { startBlackhole } from '../../src/lab/blackhole.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const start = async () => cleanup.use(await Upstreams.start({ ips: ['127.0.0.11', '127.0.0.12'] }));
const get = (upstreams: Upstreams, ip: string, path = '/') => fetch(`http://${ip}:${upstreams.port}${path}`);

it('serves several addresses on one port, and counts each', async () => {
  const upstreams = await start();
  expect((await get(upstreams, '127.0.0.11')).status).toBe(200);
  expect((await get(upstreams, '127.0.0.12', '/status/503')).status).toBe(503);
  expect((await get(upstreams, '127.0.0.12')).status).toBe(200);
  expect([upstreams.requests('127.0.0.11'), upstreams.requests('127.0.0.12'), upstreams.requests()]).toEqual([1, 2, 3]);
});

it('takes a behaviour for one address', async () => {
  const upstreams = await start();
  upstreams.handle(() => ({ kind: 'respond', status: 500 }), '127.0.0.12');
  expect((await get(upstreams, '127.0.0.11')).status).toBe(200);
  expect((await get(upstreams, '127.0.0.12')).status).toBe(500);
});

it('breaks off before the headers, and in the body', async () => {
  const upstreams = await start();
  await expect(get(upstreams, '127.0.0.11', '/reset')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
  const response = await get(upstreams, '127.0.0.11', '/die-in-body');
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toMatchObject({ message: 'terminated' });
});

it('ends a body in pieces with its end: nothing is written after it', () => {
  vi.useFakeTimers();
  cleanup.use({ close: () => vi.useRealTimers() });
  const calls: string[] = [];
  const response = Object.assign(new EventEmitter(), {
    writeHead: () => calls.push('head'),
    write: () => calls.push('write'),
    end: () => calls.push('end'),
  });
  act({ kind: 'trickle', everyMs: 20, forMs: 50 }, response as unknown as ServerResponse);
  // The response closes late, as it does on a loaded machine.
  vi.advanceTimersByTime(100);
  response.emit('close');
  expect(calls).toEqual(['head', 'write', 'write', 'end']);
});

it('refuses connections while an address is down', async () => {
  const upstreams = await start();
  await upstreams.down('127.0.0.11');
  await expect(get(upstreams, '127.0.0.11')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  await upstreams.up('127.0.0.11');
  expect((await get(upstreams, '127.0.0.11')).status).toBe(200);
});

it('closes kept-alive connections when cycled', async () => {
  const upstreams = await start();
  await (await get(upstreams, '127.0.0.11')).text();
  expect(upstreams.openConnections()).toBe(1);
  upstreams.cycle();
  await expect.poll(() => upstreams.openConnections()).toBe(0);
});

it('has an address where connecting is neither accepted nor refused, until it is closed', async () => {
  const hole = await startBlackhole('127.0.0.13');
  cleanup.use(hole);
  expect(await connect(hole.ip, hole.port)).toBe('nothing');
  await hole.close();
  expect(await connect(hole.ip, hole.port)).toBe('ECONNREFUSED');
});

function connect(host: string, port: number): Promise<string> {
  const socket = net.connect({ host, port, timeout: 300 });
  return new Promise<string>((resolve) => {
    socket.once('connect', () => resolve('connected'));
    socket.once('timeout', () => resolve('nothing'));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
  }).finally(() => socket.destroy());
}
