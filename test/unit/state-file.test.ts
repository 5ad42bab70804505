import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import type { SidelightError } from '../../src/lib/errors.ts';
import { fitBoth } from '../../src/state/fit.ts';
import { StateFile } from '../../src/state/state-file.ts';

let cleanup: Cleanup;
let folder: string;
let file: string;
let errors: SidelightError[];
let lists: { discovery: string[]; pins: string[] };
let nowMs: number;

beforeEach(() => {
  cleanup = new Cleanup();
  folder = cleanup.use(tempDir()).path;
  file = path.join(folder, 'state.json');
  errors = [];
  lists = { discovery: ['d1', 'd2'], pins: ['p1'] };
  nowMs = 1_700_000_000_000;
});

afterEach(async () => {
  await cleanup.run();
});

const strings = z.array(z.string());

function stateFile(change: { pauseMs?: number; maxBytes?: number } = {}) {
  const state = new StateFile({
    path: file,
    schemas: { discovery: strings, pins: strings },
    collect: () => lists,
    now: () => nowMs,
    onError: (error) => errors.push(error),
    pauseMs: 50,
    ...change,
  });
  cleanup.defer(() => state.stop());
  return state;
}

const asides = () => readdirSync(folder).filter((name) => name.startsWith('state.json.set-aside-'));
const until = { timeout: 5000, interval: 5 };

test('what was written is read at the next start, by its owner alone; nothing else lies about', async () => {
  await stateFile().stop();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['state.json']);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    version: 1,
    savedAtMs: 1_700_000_000_000,
    discovery: ['d1', 'd2'],
    pins: ['p1'],
  });
  expect(await stateFile().read()).toEqual({ savedAtMs: 1_700_000_000_000, ...lists });
  expect(errors).toEqual([]);
});

test('without a file there is nothing, and nothing is told', async () => {
  expect(await stateFile().read()).toBeUndefined();
  expect(errors).toEqual([]);
});

test('many touches are one write, a later touch another one; after the stop there is none', async () => {
  let written = 0;
  const state = new StateFile({
    path: file,
    schemas: { discovery: strings, pins: strings },
    collect() {
      written += 1;
      return lists;
    },
    now: Date.now,
    onError: (error) => errors.push(error),
    pauseMs: 300,
  });
  for (let i = 0; i < 100; i += 1) state.touch();
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), until);
  expect(written).toBe(1);
  state.touch();
  await sleep(100);
  expect(written).toBe(1);
  await vi.waitFor(() => expect(written).toBe(2), until);
  await state.stop();
  expect(written).toBe(3);
  state.touch();
  await state.stop();
  await sleep(400);
  expect(written).toBe(3);
});

describe('a file that cannot be used is set aside and told', () => {
  test.each([
    ['0 bytes', '', 'it is no state file'],
    ['garbage', '\u0000\u0001{{{', 'it is no state file'],
    ['another JSON', '[1, 2]', 'it is no state file'],
    ['a later version', '{"version": 2, "all": "new"}', 'it has version 2, and 1 is understood'],
    ['a wrong entry', '{"version":1,"savedAtMs":1,"discovery":[7],"pins":[]}', 'discovery.0: '],
    ['a missing list', '{"version":1,"savedAtMs":1,"discovery":[]}', 'pins: '],
    ['the future', '{"version":1,"savedAtMs":1700000061000,"discovery":[],"pins":[]}', 'it was written in the future'],
  ])('%s', async (_name, text, reason) => {
    writeFileSync(file, text);
    const state = stateFile();
    expect(await state.read()).toBeUndefined();
    expect(errors).toMatchObject([{ code: 'state_file_set_aside', message: expect.stringContaining(reason) }]);
    expect(asides()).toEqual(['state.json.set-aside-2023-11-14T22-13-20.000Z']);
    expect(readFileSync(path.join(folder, asides()[0] ?? ''), 'utf8')).toBe(text);
    await state.stop();
    expect(await stateFile().read()).toMatchObject(lists);
  });

  test('one that was cut', async () => {
    await stateFile().stop();
    truncateSync(file, 40);
    expect(await stateFile().read()).toBeUndefined();
    expect(asides()).toHaveLength(1);
  });

  test('one that is too big, unread', async () => {
    writeFileSync(file, '');
    truncateSync(file, 9 * 1024 * 1024);
    expect(await stateFile().read()).toBeUndefined();
    expect(errors[0]?.message).toContain('it has more than 8388608 bytes');
    expect(asides()).toHaveLength(1);
  });
});

test('a clock that was set back by seconds loses nothing', async () => {
  writeFileSync(file, '{"version":1,"savedAtMs":1700000059000,"discovery":[],"pins":["p"]}');
  expect(await stateFile().read()).toMatchObject({ pins: ['p'] });
});

test('a folder in its place stays as it is, and is told once', async () => {
  mkdirSync(file);
  writeFileSync(path.join(file, 'inside'), 'x');
  const state = stateFile();
  expect(await state.read()).toBeUndefined();
  expect(errors).toMatchObject([{ code: 'state_file_failed', message: `${file}: expected a file` }]);
  state.touch();
  await vi.waitFor(() => expect(errors).toHaveLength(2), until);
  state.touch();
  await sleep(150);
  await state.stop();
  expect(errors).toHaveLength(2);
  expect(readdirSync(folder)).toEqual(['state.json']);
  expect(readdirSync(file)).toEqual(['inside']);
});

test('a folder that is not there is told once per error, and writing goes on when it is', async () => {
  const later = path.join(folder, 'later');
  file = path.join(later, 'state.json');
  const state = stateFile();
  for (let i = 0; i < 3; i += 1) {
    state.touch();
    await sleep(80);
  }
  expect(errors).toMatchObject([{ code: 'state_file_failed', message: expect.stringContaining(`${file}: ENOENT`) }]);
  mkdirSync(later);
  state.touch();
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), until);
  await state.stop();
  expect(errors).toHaveLength(1);
});

test('a file in the place of its folder is told, and stays as it is', async () => {
  writeFileSync(path.join(folder, 'taken'), 'x');
  file = path.join(folder, 'taken', 'state.json');
  const state = stateFile();
  expect(await state.read()).toBeUndefined();
  await state.stop();
  expect(errors.map(({ code }) => code)).toEqual(['state_file_failed', 'state_file_failed']);
  expect(readFileSync(path.join(folder, 'taken'), 'utf8')).toBe('x');
});

test('what does not fit is left out from the end, and told once', async () => {
  lists = { discovery: Array.from({ length: 100 }, (_, i) => `d${i}`), pins: ['p1', 'p2'] };
  const state = stateFile({ maxBytes: 500 });
  state.touch();
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), until);
  await state.stop();
  expect(statSync(file).size).toBeLessThanOrEqual(500);
  const saved = await stateFile().read();
  expect(saved?.pins).toEqual(['p1', 'p2']);
  expect(saved?.discovery.length).toBeGreaterThan(20);
  expect(saved?.discovery).toEqual(lists.discovery.slice(0, saved?.discovery.length));
  expect(errors).toMatchObject([{ code: 'bound_reached', message: expect.stringMatching(/found "\d+ entries more"/) }]);
});

test('neither list takes from the other more than half of the room', () => {
  const letters = (count: number) => Array.from({ length: count }, () => 'x');
  const counts = (first: number, second: number) => {
    const fitted = fitBoth(letters(first), letters(second), 80);
    return [fitted.first.json.length, fitted.first.leftOut, fitted.second.json.length, fitted.second.leftOut];
  };
  // Each takes 4 bytes: "x" and a comma.
  expect(counts(100, 100)).toEqual([10, 90, 10, 90]);
  expect(counts(100, 2)).toEqual([18, 82, 2, 0]);
  expect(counts(2, 100)).toEqual([2, 0, 18, 82]);
  expect(counts(5, 5)).toEqual([5, 0, 5, 0]);
});

test('killed while it writes, the file is whole', async () => {
  const module = new URL('../../src/state/write-state.ts', import.meta.url).href;
  const script = `
    import { writeWhole } from ${JSON.stringify(module)};
    const [file] = process.argv.slice(1);
    for (let round = 0; ; round += 1) {
      const pins = Array.from({ length: 20_000 }, () => String(round).padStart(8, '0'));
      await writeWhole(file, JSON.stringify({ version: 1, savedAtMs: round, discovery: [], pins }));
      process.stdout.write('.');
    }`;
  for (const waitMs of [0, 3, 7, 13]) {
    const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', script, file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const gone = once(child, 'exit');
    cleanup.defer(() => child.kill('SIGKILL'));
    if (child.stdout) await once(child.stdout, 'data');
    await sleep(waitMs);
    child.kill('SIGKILL');
    await gone;
    const saved = await stateFile().read();
    expect(new Set(saved?.pins).size).toBe(1);
    expect(saved?.pins).toHaveLength(20_000);
  }
  expect(errors).toEqual([]);
  const state = stateFile();
  await state.stop();
  expect(readdirSync(folder)).toEqual(['state.json']);
});
