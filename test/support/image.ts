import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Stage } from './dockerfile.ts';

const root = path.join(import.meta.dirname, '../..');

/** What `.dockerignore` lets into the build. It must be a list of exceptions to "nothing". */
function buildContext(): string[] {
  const [first, ...rest] = readFileSync(path.join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (first !== '*' || rest.some((line) => !/^![\w.-]+$/.test(line))) throw new Error('.dockerignore: not understood');
  return rest.map((line) => line.slice(1));
}

/**
 * Does what a build stage says, in a folder that stands for the root of its file system. This machine's npm and Node 24
 * stand for those of the base image.
 */
export function playStage({ instructions }: Stage, folder: string): void {
  const inside = (where: string) => path.join(folder, where);
  let workdir = '/';
  for (const { word, rest } of instructions)
    switch (word) {
      case 'WORKDIR':
        workdir = rest;
        mkdirSync(inside(workdir), { recursive: true });
        break;
      case 'COPY':
        copy(rest, inside(workdir));
        break;
      case 'RUN':
        run(rest.replaceAll(/(?<= )\/(?=app)/g, `${folder}/`), inside(workdir));
        break;
      default:
        throw new Error(`${word}: not played`);
    }
}

function copy(rest: string, to: string): void {
  const [target, ...sources] = rest.split(' ').toReversed();
  if (target !== './' && target !== '.') throw new Error(`COPY ${rest}: not played`);
  for (const name of sources.includes('.') ? buildContext() : sources) {
    if (!buildContext().includes(name)) throw new Error(`COPY ${rest}: .dockerignore keeps ${name} out`);
    cpSync(path.join(root, name), path.join(to, name), { recursive: true });
  }
}

function run(command: string, cwd: string): void {
  const env = {
    ...process.env,
    PATH: `${path.dirname(process.execPath)}:${systemPath()}`,
    npm_config_prefer_offline: 'true',
  };
  execFileSync('sh', ['-ec', command], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Without what `npm test` puts before it: the image has no clone around it. */
function systemPath(): string {
  return (process.env['PATH'] ?? '')
    .split(':')
    .filter((folder) => !folder.includes('node_modules'))
    .join(':');
}

/** Puts this Node where the base image has its own, for users other than ours. */
export function putNode(folder: string): void {
  mkdirSync(path.join(folder, 'usr/local/bin'), { recursive: true });
  cpSync(process.execPath, path.join(folder, 'usr/local/bin/node'), { dereference: true });
  chmodSync(folder, 0o755);
}

const unshare = 'unshare';

/** Whether `confined` works here. */
export function canConfine(): boolean {
  return spawnSync(unshare, ['--mount', 'setpriv', '--version']).status === 0;
}

/**
 * The command line that runs another one as Kubernetes would: as that user, without any capability and any way to one, and
 * with nothing writable but `writable`. Needs root.
 */
export function confined(
  folder: string,
  writable: string,
  user: string,
  command: readonly string[],
): [string, string[]] {
  const mounts = `mount --bind "$0" "$0" && mount --bind "$1" "$1" && mount -o remount,ro,bind "$0" && mount -o remount,ro,bind / && shift && exec "$@"`;
  const drop = ['--reuid', user, '--regid', user, '--clear-groups', '--no-new-privs', '--bounding-set=-all'];
  const env = ['env', '-i', `PATH=${folder}/usr/local/bin:/usr/bin:/bin`];
  return [unshare, ['--mount', 'sh', '-c', mounts, folder, writable, 'setpriv', ...drop, ...env, ...command]];
}
