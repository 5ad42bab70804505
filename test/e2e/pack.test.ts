import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

let elsewhere: string;
let packed: string[];

beforeAll(() => {
  elsewhere = mkdtempSync(join(tmpdir(), 'sidelight-pack-'));
  const report = npm(['pack', '--json', '--silent', '--pack-destination', elsewhere], root);
  const [tarball] = JSON.parse(report.slice(report.indexOf('['))) as [{ filename: string; files: { path: string }[] }];
  packed = tarball.files.map((file) => file.path);

  const app = join(elsewhere, 'app');
  mkdirSync(app);
  writeFileSync(join(app, 'package.json'), '{}');
  npm(['install', '--prefer-offline', '--no-package-lock', '--loglevel=error', join(elsewhere, tarball.filename)], app);
}, 180_000);

afterAll(() => rmSync(elsewhere, { recursive: true, force: true }));

function npm(args: string[], cwd: string): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8' });
}

/** Runs the installed command with that folder first on PATH. */
function sidelight(args: string[], nodeFolder: string) {
  const env = { ...process.env, PATH: [nodeFolder, process.env['PATH']].join(delimiter) };
  return spawnSync(join(elsewhere, 'app/node_modules/.bin/sidelight'), args, { cwd: '/', encoding: 'utf8', env });
}

test('the package holds what runs, and no sources, tests or tools', () => {
  const tops = new Set(packed.map((path) => path.replace(/\/.*/, '')));
  for (const always of ['package.json', 'README.md', 'LICENSE']) tops.delete(always);

  expect([...tops].toSorted()).toEqual(['bin', 'dist', 'docs', 'envoy', 'monitoring', 'page', 'proto', 'setup']);
  expect(packed).toContain('dist/main.js');
  expect(packed).toContain('page/index.html');
  expect(packed.filter((path) => path.startsWith('setup/')).toSorted()).toEqual([
    'setup/command.mjs',
    'setup/envoy-version.mjs',
    'setup/envoy.mjs',
    'setup/failure.mjs',
  ]);
  expect(packed.filter((path) => /\.ts$|test|node_modules|\.tools/.test(path))).toEqual([]);
});

test('the installed command prints its version on Node 24', () => {
  const { stdout, stderr, status } = sidelight(['--version'], dirname(process.execPath));

  expect({ stdout, stderr, status }).toEqual({ stdout: `${version}\n`, stderr: '', status: 0 });
});

test('the installed command prints its help on Node 24', () => {
  const { stdout, status } = sidelight(['--help'], dirname(process.execPath));

  expect(stdout).toMatch(/^Usage: sidelight /);
  expect(status).toBe(0);
});

test('the installed command refuses an older Node', () => {
  const older = join(elsewhere, 'older');
  mkdirSync(older);
  writeFileSync(join(older, 'node'), '#!/bin/sh\necho v20.20.2\n', { mode: 0o755 });

  const { stderr, status } = sidelight(['--version'], older);

  expect(stderr).toMatch(/^sidelight: needs Node 24 or later, found v20\.20\.2 /);
  expect(status).toBe(1);
});
