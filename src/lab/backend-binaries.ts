import { existsSync } from 'node:fs';
import { findOnPath } from '../../setup/command.mjs';

/** Backends that `npm install` does not bring: the variable that names each program, its names on PATH, and where to get it. */
export const backendPrograms = {
  jaeger: {
    variable: 'JAEGER_BIN',
    commands: ['jaeger'],
    toGet: 'the program `jaeger` of a release of Jaeger 2',
  },
  prometheus: {
    variable: 'PROMETHEUS_BIN',
    commands: ['prometheus'],
    toGet:
      'on Debian `apt-get download prometheus && dpkg -x prometheus_*.deb DIR`: DIR/usr/bin/prometheus; or a release',
  },
  alertmanager: {
    variable: 'ALERTMANAGER_BIN',
    commands: ['prometheus-alertmanager', 'alertmanager'],
    toGet: 'on Debian `apt-get install prometheus-alertmanager`, which starts a service of its own; or a release',
  },
} as const;
export type BackendName = keyof typeof backendPrograms;

/**
 * The program's path: what its variable names, else what is on PATH; absent where there is neither.
 * Throws when the variable names no file, because a mistyped path must not look like a missing program.
 */
export function findBackend(name: BackendName, env: NodeJS.ProcessEnv): string | undefined {
  const { variable, commands } = backendPrograms[name];
  const named = env[variable];
  if (named === undefined || named === '') {
    return commands.map((command) => findOnPath(command, env)).find((found) => found !== undefined);
  }
  if (!existsSync(named)) throw new Error(`${variable} names ${named}, which is not there`);
  return named;
}
