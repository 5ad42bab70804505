import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
let cleanup = new Cleanup();
afterEach(async () => {
  await cleanup.run();
  cleanup = new Cleanup();
});

async function run(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  cleanup.defer(() => child.kill('SIGKILL'));
  const text = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    text.out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    text.err += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number];
  return { code, ...text };
}

function configFile(text: string): string {
  const file = path.join(cleanup.use(tempDir()).path, 'sidelight.yaml');
  writeFileSync(file, text);
  return file;
}

it('--check tells every mistake at once and exits with 2', async () => {
  const file = configFile('listen:\n  grcp: 1\ntagging: {responseHeaders: sometimes}\njoin: {lingerMs: 5}\n');
  const { code, err } = await run('serve', '--config', file, '--check');
  expect(code).toBe(2);
  expect(err).toContain('listen.grcp: expected a known key, perhaps grpc');
  expect(err).toContain('tagging.responseHeaders: found "sometimes": expected one of never, on_request, always');
  expect(err).toContain('join.lingerMs: found 5: expected whole number, 1001 to 60000 (ms)');
});

it('--check looks into the endpoints file too', async () => {
  const endpoints = configFile('clusters:\n  shop: [10.0.0.7, nowhere]\n');
  const { code, err } = await run('--check', '--config', configFile(`discovery: {file: ${endpoints}}`));
  expect([code, err]).toEqual([2, expect.stringContaining('clusters.shop[1]: found "nowhere": expected IP, IP:port')]);
});

it('does not serve on a wrong config either', async () => {
  expect((await run('--config', configFile('limits: {clusters: none}'))).code).toBe(2);
});

it('says what it cannot read, and exits with 1', async () => {
  const { code, err } = await run('--config', '/no/such/file.yaml', '--check');
  expect([code, err]).toEqual([1, expect.stringContaining('/no/such/file.yaml')]);
});

it('prints a config that it accepts again', async () => {
  const { code, out } = await run('--print-config', '--grpc', '127.0.0.1:50099');
  expect(code).toBe(0);
  expect(out).toContain('grpc: 127.0.0.1:50099');
  expect(await run('--config', configFile(out), '--check')).toMatchObject({ code: 0, out: 'The config is valid.\n' });
});

it('names the address that is taken, and exits with 1', async () => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  cleanup.use(taken);
  await once(taken, 'listening');
  const { port } = taken.address() as net.AddressInfo;
  const { code, err } = await run('--grpc', '127.0.0.1:0', '--http', `127.0.0.1:${port}`);
  expect([code, err]).toEqual([1, expect.stringContaining(`127.0.0.1:${port}`)]);
});

it('is ready when it listens, and ends with 0 on SIGTERM', async () => {
  const sidelight = cleanup.use(await startSidelight({ node: process.execPath, flags: [], entry: main }, {}));
  expect(JSON.parse(await sidelight.get('/readyz'))).toEqual({ ready: true, reasons: [] });
  expect(JSON.parse(await sidelight.get('/healthz'))).toEqual({ status: 'ok' });
  process.kill(sidelight.pid, 'SIGTERM');
  expect(await sidelight.ended).toBe(0);
});

it('ends on SIGTERM although nobody is left to read its log', async () => {
  const child = spawn(process.execPath, [main, '--grpc', '127.0.0.1:0', '--http', '127.0.0.1:0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  cleanup.defer(() => child.kill('SIGKILL'));
  await once(child.stderr, 'data');
  child.stderr.destroy();
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

it('ends in time on SIGTERM although its OTLP receiver never answers', async () => {
  const silent = net.createServer(() => {}).listen(0, '127.0.0.1');
  cleanup.use(silent);
  await once(silent, 'listening');
  const endpoint = `http://127.0.0.1:${(silent.address() as net.AddressInfo).port}`;
  const config = { otlp: { endpoint, intervalMs: 100 }, shutdownMs: 2000 };
  const sidelight = cleanup.use(await startSidelight({ node: process.execPath, flags: [], entry: main }, config));
  const before = performance.now();
  process.kill(sidelight.pid, 'SIGTERM');
  expect(await sidelight.ended).toBe(0);
  expect(performance.now() - before).toBeLessThan(10_000);
});
