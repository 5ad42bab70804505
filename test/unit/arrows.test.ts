import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

/** What each room of src/ may import: the arrows of the layout. `.oxlintrc.json` holds them; here breaches are planted. */
const arrows: Record<string, readonly string[]> = {
  model: [],
  lib: [],
  decode: ['model', 'lib'],
  assemble: ['model', 'lib'],
  judge: ['model', 'lib'],
  discovery: ['model', 'lib'],
  endpoints: ['judge', 'model', 'lib'],
  emit: ['model', 'lib'],
  config: ['model', 'lib'],
  admin: ['model', 'lib'],
  ingress: ['decode', 'model', 'lib'],
  flow: ['assemble', 'judge', 'model', 'lib'],
  state: ['lib'],
  attach: ['model', 'lib'],
  doctor: ['model', 'lib'],
  monitoring: ['emit', 'model'],
  lab: ['lib'],
  cli: [
    'model',
    'lib',
    'decode',
    'assemble',
    'judge',
    'discovery',
    'endpoints',
    'emit',
    'config',
    'admin',
    'ingress',
    'flow',
    'state',
    'attach',
    'doctor',
    'monitoring',
    'lab',
  ],
};
const rooms = Object.keys(arrows);
const pure = ['model', 'decode', 'assemble', 'judge', 'endpoints', 'flow', 'doctor'];
const edges = ['ingress', 'discovery', 'state', 'config', 'admin'];
const root = join(import.meta.dirname, '../..');

/** Path below the planted project → source. */
const planted = new Map<string, string>();
let reports: Map<string, string[]>;
let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'sidelight-arrows-'));
  for (const room of rooms) plantIn(room);
  for (const [path, source] of planted) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), `${source}\n`);
  }
  reports = lint(project);
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

function plantIn(room: string): void {
  for (const target of rooms.filter((other) => other !== room)) {
    planted.set(`src/${room}/from-${target}.ts`, `export { x } from '../${target}/x.ts';`);
    planted.set(`src/${room}/type-from-${target}.ts`, `export type { X } from '../${target}/x.ts';`);
    planted.set(
      `src/${room}/deep/from-${target}.ts`,
      `import { x } from '../../${target}/deep/x.ts';\nexport const y = x;`,
    );
    planted.set(
      `src/${room}/late-from-${target}.ts`,
      `export const y = async () => await import('../${target}/x.ts');`,
    );
  }
  planted.set(`src/${room}/from-main.ts`, `export { x } from '../main.ts';`);
  planted.set(`src/${room}/from-test.ts`, `export { x } from '../../test/support/x.ts';`);
  planted.set(`src/${room}/from-setup.ts`, `export { x } from '../../setup/envoy.mjs';`);
  planted.set(`src/${room}/from-itself.ts`, `export { x } from './deep/x.ts';`);
  planted.set(`src/${room}/deep/from-parent.ts`, `export { x } from '../x.ts';`);
  planted.set(`src/${room}/environment.ts`, `export const x = process.env['X'];`);
  planted.set(`src/${room}/arguments.ts`, `export const { argv } = process;`);
  planted.set(`src/${room}/clock.ts`, `export const x = () => Date.now();`);
  planted.set(`src/${room}/new-date.ts`, `export const x = () => new Date();`);
  planted.set(`src/${room}/monotonic-clock.ts`, `export const x = () => performance.now();`);
  planted.set(`src/${room}/hidden-clock.ts`, `export const x = () => globalThis.Date.now();`);
  planted.set(`src/${room}/timer.ts`, `export const x = setTimeout(() => 1, 1);`);
  planted.set(`src/${room}/files.ts`, `export { readFileSync } from 'node:fs';`);
  planted.set(`src/${room}/sockets.ts`, `import { connect } from 'node:net';\nexport const x = connect(1);`);
  planted.set(`src/${room}/addresses.ts`, `import { isIP } from 'node:net';\nexport const x = isIP('::1');`);
  planted.set(`src/${room}/logger.ts`, `import { pino } from 'pino';\nexport const x = pino();`);
  planted.set(`src/${room}/ring-a.ts`, `import { b } from './ring-b.ts';\nexport const a = () => b;`);
  planted.set(`src/${room}/ring-b.ts`, `import { a } from './ring-a.ts';\nexport const b = () => a;`);
}

/** The rules that each file breaks, by path, with the project's own configuration. */
function lint(folder: string): Map<string, string[]> {
  const config = JSON.parse(readFileSync(join(root, '.oxlintrc.json'), 'utf8'));
  // Rules that need types are left out: the planted modules export nothing that has one.
  writeFileSync(join(folder, '.oxlintrc.json'), JSON.stringify({ ...config, options: {} }));
  const oxlint = join(root, 'node_modules/.bin/oxlint');
  const { stdout } = spawnSync(oxlint, ['--format', 'json'], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const found = new Map<string, string[]>();
  for (const { filename, code } of (JSON.parse(stdout) as { diagnostics: { filename: string; code: string }[] })
    .diagnostics) {
    found.set(filename, [...(found.get(filename) ?? []), code]);
  }
  return found;
}

/** The rooms in which the planted file of that name is reported under that rule. */
function roomsThatRefuse(file: string, rule: string): string[] {
  return rooms.filter((room) => reports.get(`src/${room}/${file}`)?.includes(rule));
}

const imports = 'eslint(no-restricted-imports)';
const globals = 'eslint(no-restricted-globals)';
const properties = 'eslint(no-restricted-properties)';

test('every folder of src/ is a room with arrows', () => {
  const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());

  expect(rooms).toEqual(expect.arrayContaining(folders.map((entry) => entry.name)));
});

test.each(rooms)('%s imports the rooms that its arrows allow, and no other in any form', (room) => {
  for (const target of rooms.filter((other) => other !== room)) {
    const files = ['from', 'type-from', 'deep/from', 'late-from'].map((kind) => `src/${room}/${kind}-${target}.ts`);

    expect(files.every((file) => planted.has(file))).toBe(true);
    expect(files.filter((file) => reports.get(file)?.includes(imports))).toEqual(
      arrows[room]?.includes(target) ? [] : files,
    );
  }
});

describe('what no room may do', () => {
  test('import main.ts or a test', () => {
    expect(roomsThatRefuse('from-main.ts', imports)).toEqual(rooms);
    expect(roomsThatRefuse('from-test.ts', imports)).toEqual(rooms);
  });

  test('import set-up, except the lab, which asks it for Envoy', () => {
    expect(roomsThatRefuse('from-setup.ts', imports)).toEqual(rooms.filter((room) => room !== 'lab'));
  });

  test('go round in a circle', () => {
    expect(roomsThatRefuse('ring-a.ts', 'import(no-cycle)')).toEqual(rooms);
  });

  test('import its own files is allowed', () => {
    expect(roomsThatRefuse('from-itself.ts', imports)).toEqual([]);
    expect(roomsThatRefuse('deep/from-parent.ts', imports)).toEqual([]);
  });

  test('read the environment or the arguments, except the lab', () => {
    const refusing = rooms.filter((room) => room !== 'lab');

    expect(rooms.filter((room) => reads(room, 'environment.ts'))).toEqual(refusing);
    expect(rooms.filter((room) => reads(room, 'arguments.ts'))).toEqual(refusing);
  });

  test('reach a global by another name', () => {
    expect(roomsThatRefuse('hidden-clock.ts', globals)).toEqual(rooms);
  });
});

describe('what a pure room may not do', () => {
  test('read a clock; emit may not either', () => {
    for (const file of ['clock.ts', 'new-date.ts', 'monotonic-clock.ts']) {
      expect(roomsThatRefuse(file, globals)).toEqual([
        'model',
        'decode',
        'assemble',
        'judge',
        'endpoints',
        'emit',
        'flow',
        'doctor',
      ]);
    }
  });

  test('set a timer', () => {
    expect(roomsThatRefuse('timer.ts', globals)).toEqual(pure);
  });

  test('do I/O or log', () => {
    for (const file of ['files.ts', 'sockets.ts', 'logger.ts']) expect(roomsThatRefuse(file, imports)).toEqual(pure);
    expect(roomsThatRefuse('addresses.ts', imports)).toEqual([]);
  });
});

test('an edge takes `now` as an option instead of asking the clock', () => {
  expect(roomsThatRefuse('clock.ts', properties).toSorted()).toEqual(edges.toSorted());
  expect(roomsThatRefuse('monotonic-clock.ts', properties).toSorted()).toEqual(edges.toSorted());
});

function reads(room: string, file: string): boolean {
  const found = reports.get(`src/${room}/${file}`) ?? [];
  return found.includes(properties) || found.includes(globals);
}
