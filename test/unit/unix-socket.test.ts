import { existsSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { startTestSidelight } from '../support/sidelight.ts';

/* `listen.grpc: unix:/path`, for an Envoy in the same pod. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const socketIn = () => path.join(cleanup.use(tempDir()).path, 'grpc.sock');
const start = async (socket: string) => cleanup.use(await startTestSidelight({ listen: { grpc: `unix:${socket}` } }));

/** A socket that nobody listens on, as a process that was killed leaves it. */
async function leaveBehind(socket: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const server = createServer().listen(socket, resolve);
  await promise;
  const moved = `${socket}.moved`;
  // A server takes its own path away when it ends.
  renameSync(socket, moved);
  server.close();
  renameSync(moved, socket);
}

it('is open to all who can reach its folder, and gone after the end', async () => {
  const socket = socketIn();
  const sidelight = await start(socket);
  expect(statSync(socket).mode & 0o777).toBe(0o666);
  await sidelight.close();
  expect(existsSync(socket)).toBe(false);
});

it('takes the place of one that was left behind', async () => {
  const socket = socketIn();
  await leaveBehind(socket);
  expect(existsSync(socket)).toBe(true);
  await expect(start(socket)).resolves.toBeDefined();
});

it('leaves one alone that another process listens on', async () => {
  const socket = socketIn();
  await start(socket);
  await expect(start(socket)).rejects.toThrow(`unix:${socket}`);
  expect(existsSync(socket)).toBe(true);
});

it('leaves a file alone', async () => {
  const socket = socketIn();
  writeFileSync(socket, 'precious');
  await expect(start(socket)).rejects.toThrow(`unix:${socket}`);
  expect(statSync(socket).size).toBe(8);
});

it.each(['unix:relative.sock', `unix:/${'x'.repeat(107)}`])('is refused by the config: %s', async (grpc) => {
  await expect(startTestSidelight({ listen: { grpc } })).rejects.toThrow('unix:/path, of 107 bytes at most');
});
