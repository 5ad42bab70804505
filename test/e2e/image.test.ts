import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it, type TestContext } from 'vitest';
import { Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { only, parseDockerfile, type Stage } from '../support/dockerfile.ts';
import { canConfine, confined, playStage, putNode } from '../support/image.ts';
import { logClient } from '../support/log-client.ts';
import { readManifestText } from '../support/manifests.ts';
import { until } from '../support/until.ts';

/* The Dockerfile without Docker: its steps in a folder, and what they made as its user on a read-only root. */
const [build, image] = parseDockerfile(readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')) as [
  Stage,
  Stage,
];
const [user = ''] = only(image, 'USER').split(':');

const made = new Cleanup();
const cleanup = new Cleanup();
let root: string;

beforeAll(() => {
  const folder = made.use(tempDir()).path;
  playStage(build, folder);
  root = path.join(folder, 'image');
  mkdirSync(root);
  renameSync(path.join(folder, 'app'), path.join(root, 'app'));
  putNode(root);
  chmodSync(folder, 0o755);
}, 300_000);
afterAll(() => made.run());
afterEach(() => cleanup.run());

function needRoot({ skip }: TestContext): void {
  if (!canConfine()) skip('needs root, unshare and setpriv, to run as another user on a read-only root');
}

/** Runs the image's command with the shipped config on free ports, without the API server that a pod would have. */
async function start() {
  const state = cleanup.use(tempDir()).path;
  chownSync(state, Number(user), Number(user));
  const config = path.join(state, 'sidelight.yaml');
  const shipped = readManifestText('base/sidelight.yaml').replace('enabled: true', 'enabled: false');
  writeFileSync(config, shipped.replace('/var/lib/sidelight', state));
  const [entry = ''] = JSON.parse(only(image, 'ENTRYPOINT')) as string[];
  const args = ['serve', '--config', config, '--grpc', '127.0.0.1:0', '--http', '127.0.0.1:0'];
  const child = spawn(...confined(root, state, user, [path.join(root, entry), ...args]), {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  dieWithUs(child);
  cleanup.defer(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  const listening = () => /"event":"listening".*?"grpc":"[^"]*:(\d+)".*?"http":"[^"]*:(\d+)"/.exec(log);
  await until('the image’s command', () => child.exitCode !== null || listening() !== null).catch(() => undefined);
  const [, grpcPort, httpPort] = listening() ?? [];
  if (grpcPort === undefined) throw new Error(`it did not come up:\n${log}`);
  return { child, state, grpcPort: Number(grpcPort), httpPort: Number(httpPort), log: () => log };
}

it('holds what npm pack ships, and what that needs to run', () => {
  expect(readdirSync(path.join(root, 'app')).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'bin',
    'dist',
    'docs',
    'envoy',
    'node_modules',
    'package-lock.json',
    'package.json',
    'page',
    'proto',
    'setup',
  ]);
  const modules = readdirSync(path.join(root, 'app/node_modules'));
  expect(modules).toContain('@grpc');
  for (const tool of ['typescript', 'vitest', 'vite', 'node', 'oxlint']) expect(modules).not.toContain(tool);
});

it('has the same base as the stage whose outcome it takes', () => {
  expect(only(image, 'COPY')).toBe('--from=build /app /app');
  expect(build.from).toMatch(/^node:24-\w+-slim$/);
  expect(image.from).toBe(build.from);
});

it('serves as its user without rights on a read-only root, keeps its state, and drains on SIGTERM', async (context) => {
  needRoot(context);
  const { child, state, grpcPort, httpPort, log } = await start();
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  expect(status).toMatch(new RegExp(`^Uid:\t${user}\t${user}\t${user}\t${user}$`, 'm'));
  expect(status).toMatch(/^CapEff:\t0+$/m);
  expect(status).toMatch(/^CapBnd:\t0+$/m);
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);

  const client = logClient(grpcPort, 'shop-1');
  cleanup.use(client);
  const stream = client.stream();
  stream.entries([]);
  const reporters = async () => (await fetch(`http://127.0.0.1:${httpPort}/api/v1/reporters`)).text();
  await until('the log stream', async () => (await reporters()).includes('shop-1'));

  const page = (file: string) => fetch(`http://127.0.0.1:${httpPort}/${file}`);
  expect([(await page('')).status, (await page('page/preact.js')).status]).toEqual([200, 200]);

  const exited = once(child, 'exit');
  const sinceMs = performance.now();
  child.kill('SIGTERM');
  // OK, not cut off: an Envoy opens its stream anew, on another replica, and loses nothing.
  expect(await stream.status).toBe(0);
  expect(await exited).toEqual([0, null]);
  expect(performance.now() - sinceMs).toBeLessThan(10_000);
  expect(log()).toContain('"event":"stopped"');
  expect(log()).not.toContain('state.failed');
  expect(existsSync(path.join(state, 'state.json'))).toBe(true);
});

it('nothing else can be written there', (context) => {
  needRoot(context);
  const state = cleanup.use(tempDir()).path;
  chownSync(state, Number(user), Number(user));
  const touch = (file: string) => spawnSync(...confined(root, state, user, ['touch', file]), { encoding: 'utf8' });
  expect(touch(path.join(state, 'file')).status).toBe(0);
  for (const file of [path.join(root, 'app/file'), '/var/tmp/file'])
    expect(touch(file).stderr).toContain('Read-only file system');
});

it('its health check tells a ready one from none', async (context) => {
  needRoot(context);
  const { child, httpPort } = await start();
  const [, json = ''] = /CMD (\[.*\])$/.exec(only(image, 'HEALTHCHECK')) ?? [];
  const [, ...args] = JSON.parse(json) as [string, string, string];
  const check = () =>
    spawnSync(
      process.execPath,
      args.map((each) => each.replace('9464', String(httpPort))),
    ).status;
  expect(args.at(-1)).toContain('http://127.0.0.1:9464/readyz');
  expect(check()).toBe(0);
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
  expect(check()).toBe(1);
});
