import type { ConfigOverrides } from '../../config/check-config.ts';
import { formatProblems } from '../../config/check-config.ts';
import { loadConfig } from '../../config/load-config.ts';
import { printConfig } from '../../config/print-config.ts';
import type { Config } from '../../config/schema.ts';
import { SidelightError } from '../../lib/errors.ts';
import { createLogger, type Logger } from '../../lib/logger.ts';
import { endpointsFileProblems } from './check-endpoints.ts';
import { startSidelight } from './sidelight.ts';

/** What `sidelight serve` was called with. */
export interface ServeOptions {
  /** Absent: all defaults. */
  configFile: string | undefined;
  overrides: ConfigOverrides;
  /** Only check the config. */
  check: boolean;
  /** Only print the config, with what it means. */
  printConfig: boolean;
}

/** What a command may use of the process. */
export interface Surroundings {
  version: string;
  env: Readonly<Record<string, string | undefined>>;
  now: () => number;
  monotonicMs: () => number;
  random: () => number;
  /** One line to stdout, or to stderr. */
  out: (text: string) => void;
  err: (text: string) => void;
  /** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
  stopped: () => Promise<string>;
}

/** What the config makes impossible, though it is no mistake. */
function warnOfBlindness({ discovery, clusters }: Config, logger: Logger): void {
  if (!discovery.dns.enabled || discovery.dns.sameResolverAsProxy) return;
  const asked = clusters.some(({ host }) => host !== undefined);
  const consequence = 'pins of clusters that DNS would tell of stay unknown (other_resolver)';
  const remedy = 'if the proxies get the same answers, set discovery.dns.sameResolverAsProxy: true';
  logger[asked ? 'warn' : 'info']('discovery.other_resolver', { consequence, remedy });
}

function check({ discovery: { file } }: Config, around: Surroundings): number {
  const problems = file === undefined ? undefined : endpointsFileProblems(file);
  if (problems === undefined) {
    around.out('The config is valid.');
    return 0;
  }
  around.err(`sidelight: the endpoints file is wrong (${file}, discovery.file)`);
  around.err(problems);
  return 2;
}

/** Exit codes: 0 done, 1 it cannot run, 2 the config is wrong. */
export async function serve(options: ServeOptions, around: Surroundings): Promise<number> {
  const checked = loadConfig(options.configFile, options.overrides);
  if (!checked.ok) {
    around.err(`sidelight: the config is wrong (${options.configFile ?? 'command line'})`);
    around.err(formatProblems(checked.problems));
    return 2;
  }
  const { config } = checked;
  if (options.printConfig) around.out(printConfig(config).trimEnd());
  if (options.check) return check(config, around);
  if (options.printConfig) return 0;
  // Before anything listens: who sees the first log line may stop us at once.
  const stopped = around.stopped();
  const logger = createLogger({ ...config.log, now: around.now });
  try {
    const sidelight = await startSidelight({ ...around, config, logger });
    const at = (address: string, port: number) => address.replace(/:0$/, `:${port}`);
    const grpc = at(config.listen.grpc, sidelight.grpcPort);
    const http = at(config.listen.http, sidelight.httpPort);
    const { configFile = 'none: all defaults' } = options;
    logger.info('listening', { grpc, http, version: around.version, config: configFile, spans: sidelight.spansTo });
    warnOfBlindness(config, logger);
    const signal = await stopped;
    logger.info('stopping', { signal });
    await sidelight.close();
    logger.info('stopped');
    return 0;
  } catch (error) {
    if (!(error instanceof SidelightError)) throw error;
    logger.error('start.failed', { error });
    return 1;
  } finally {
    await logger.close();
  }
}
