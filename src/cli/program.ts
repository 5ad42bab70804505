import { Command, Option } from 'commander';
import type { ConfigOverrides } from '../config/check-config.ts';
import { SidelightError } from '../lib/errors.ts';
import { addAttach } from './attach/command.ts';
import { attach } from './attach/run.ts';
import { append, endWith } from './command-line.ts';
import { runDemo } from './demo/run.ts';
import type { Program } from './demo/sidelight-process.ts';
import { addDoctor } from './doctor/command.ts';
import { doctor } from './doctor/run.ts';
import { wrongArguments } from './drained/decide.ts';
import { type DrainedFlags, defaultFrom } from './drained/options.ts';
import { drained } from './drained/run.ts';
import { addRules } from './rules/command.ts';
import { rules } from './rules/run.ts';
import { type Surroundings, serve } from './serve/serve.ts';
import { signalCode } from './signal-code.ts';

/** What the program knows of the process it runs in. */
export interface ProgramOptions extends Surroundings {
  /** How to start this program again. */
  self: Program;
  /** Standard output is a terminal that may show colours. */
  colour: boolean;
}

/** The command line of `sidelight`: parses arguments and calls one folder per command. `exit` gets the exit code. */
export function createProgram(around: ProgramOptions, exit: (code: number) => void): Command {
  const run = async (command: () => Promise<number>) =>
    exit(await command().catch((error: unknown) => failed(error, around)));
  const program = new Command('sidelight')
    .description(
      'Tells what Envoy did to a request: hidden retries, stale connections. As OpenTelemetry spans and metrics.',
    )
    .version(around.version, '--version', 'print the version')
    .helpOption('--help', 'print this help');

  program
    .command('serve', { isDefault: true })
    .description('run the service')
    .option('--config <file>', 'YAML; docs/reference/config.md has every field')
    .option('--grpc <host:port>', 'listen.grpc: where Envoy connects')
    .option('--http <host:port>', 'listen.http: health, metrics and API')
    .addOption(new Option('--log-level <level>', 'log.level').choices(['error', 'warn', 'info', 'debug']))
    .option('--check', 'only check the config: every problem, exit code 2')
    .option('--print-config', 'only print the config in force, with what each field means')
    .helpOption('--help', 'print this help')
    .action((flags: ServeFlags) =>
      run(() =>
        serve(
          {
            configFile: flags.config,
            overrides: overridesOf(flags),
            check: flags.check === true,
            printConfig: flags.printConfig === true,
          },
          around,
        ),
      ),
    );

  addAttach(program, exit, (flags) => exit(attach(flags, around)));

  addRules(program, exit, (form, flags) => exit(rules(form, flags, around)));

  addDrained(program, exit, (target, flags) => run(() => drained(target, flags, around)));

  addDoctor(program, exit, (targets, flags) => run(() => doctor(targets, flags, around)));

  program
    .command('demo')
    .description('play five scenarios on a real Envoy on this machine')
    .option('--keep', 'leave it running, with traffic, until Ctrl-C')
    .option('--backends', 'with Jaeger, Prometheus and Alertmanager, where they are, and an alert that fires')
    .helpOption('--help', 'print this help')
    .action((flags: DemoFlags) => run(() => demo(flags, around)));

  return program;
}

function addDrained(
  program: Command,
  exit: (code: number) => void,
  run: (target: string, flags: DrainedFlags) => Promise<void>,
): void {
  program
    .command('drained')
    .description('wait until nobody uses an endpoint that is to be shut down; docs/drained.md')
    .argument('<endpoint|host>', 'IP, IP:port or [v6]:port; or a DNS name: all endpoints that left it')
    .option('--quiet-for <time>', 'how long nobody may have used it', '60s')
    .option('--timeout <time>', 'how long to wait', '15m')
    .option(
      '--from <url>',
      `a replica, or a name with an address for each; may be repeated (default: ${defaultFrom})`,
      append,
    )
    .option('--ignore-reporter <id>', 'node id or pod of a proxy that is gone; may be repeated', append)
    .option('--json', 'print one JSON object at the end')
    .helpOption('--help', 'print this help')
    .addHelpText(
      'after',
      '\nExit codes: 0 drained, 1 not within the timeout, 2 wrong arguments, 3 cannot know, 4 quiet, but connections may be open.',
    )
    .exitOverride(endWith(exit, wrongArguments))
    .action(run);
}

interface DemoFlags {
  keep?: true;
  backends?: true;
}

interface ServeFlags {
  config?: string;
  grpc?: string;
  http?: string;
  logLevel?: 'error' | 'warn' | 'info' | 'debug';
  check?: true;
  printConfig?: true;
}

function overridesOf({ grpc, http, logLevel }: ServeFlags): ConfigOverrides {
  return {
    listen: { ...(grpc === undefined ? {} : { grpc }), ...(http === undefined ? {} : { http }) },
    log: logLevel === undefined ? {} : { level: logLevel },
  };
}

async function demo({ keep, backends }: DemoFlags, around: ProgramOptions): Promise<number> {
  const interrupt = new AbortController();
  let stoppedBy = '';
  const watch = async () => {
    stoppedBy = await around.stopped();
    interrupt.abort();
  };
  void watch();
  const end = await runDemo({
    program: around.self,
    otlpEndpoint: around.env['OTEL_EXPORTER_OTLP_ENDPOINT'] || undefined,
    keep: keep === true,
    backends: backends === true,
    env: around.env,
    colour: around.colour,
    say: around.out,
    signal: interrupt.signal,
  }).catch((error: unknown) => {
    // What cannot be had or did not come is said in a line; the stack would only hide it.
    around.err(`demo: ${error instanceof Error ? error.message : String(error)}`);
    return 'not_met' as const;
  });
  if (stoppedBy !== '') around.out('\nStopped; nothing is left running.');
  if (end !== 'interrupted') return end === 'met' ? 0 : 1;
  return signalCode(stoppedBy);
}

function failed(error: unknown, { err }: ProgramOptions): number {
  if (error instanceof SidelightError) err(`sidelight: ${error.message}\n${error.hint}`);
  else err(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return 1;
}
