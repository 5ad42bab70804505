import type { Command } from 'commander';
import { append, endWith, istioRootNamespace } from '../command-line.ts';
import { type DoctorFlags, defaultTimeout } from './options.ts';
import { exitCodes } from './run.ts';

/** `doctor` of the command line. */
export function addDoctor(
  program: Command,
  exit: (code: number) => void,
  run: (targets: string[], flags: DoctorFlags) => Promise<void>,
): void {
  const file = (what: string) => `what ${what} answered; - is standard input; one per proxy`;
  program
    .command('doctor')
    .description('tell why nothing, or a wrong thing, shows up; docs/doctor/README.md')
    .argument('[url|file.yaml...]', 'admin interfaces of Envoys; or YAML before it is applied')
    .option('--config-dump <file>', file('/config_dump?include_eds'), append)
    .option('--stats <file>', file('/stats'), append)
    .option('--clusters <file>', file('/clusters?format=json'), append)
    .option('--runtime <file>', file('/runtime'), append)
    .option('--server-info <file>', file('/server_info'), append)
    .option('--host <name>', 'which cluster carried the traffic for this host')
    .option('--chain', 'the proxies are given in the order of a call, the client first')
    .option('--root-namespace <name>', 'Istio: whose EnvoyFilters hold for the whole mesh', istioRootNamespace)
    .option('--ignore <id>', 'leave a finding out; may be repeated', append)
    .option('--timeout <time>', 'how long one answer may take', defaultTimeout)
    .option('--json', 'print one JSON object')
    .helpOption('--help', 'print this help')
    .addHelpText(
      'after',
      '\nExit codes: 0 nothing wrong was found, 1 warnings, 2 errors, 3 could not look, 4 wrong arguments.',
    )
    .exitOverride(endWith(exit, exitCodes.wrongArguments))
    .action(run);
}
