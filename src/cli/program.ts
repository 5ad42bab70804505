import { Command } from 'commander';

/** What the program knows of its surroundings: `version` is the package's. */
export interface ProgramOptions {
  version: string;
}

/** The command line of `sidelight`: parses arguments and calls one file of this folder per command. */
export function createProgram({ version }: ProgramOptions): Command {
  return new Command('sidelight')
    .description(
      'Tells what Envoy did to a request: hidden retries, stale connections. As OpenTelemetry spans and metrics.',
    )
    .version(version, '--version', 'print the version')
    .helpOption('--help', 'print this help');
}
