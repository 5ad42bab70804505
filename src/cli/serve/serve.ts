import type { ConfigOverrides } from '../../config/check-config.ts';
import { formatProblems } from '../../config/check-config.ts';
import { loadConfig } from '../../config/load-config.ts';
import { printConfig } from '../../config/print-config.ts';
import { SidelightError } from '../../lib/errors.ts';
import { createLogger } from '../../lib/logger.ts';
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
  random: () => number;
  /** One line to stdout, or to stderr. */
  out: (text: string) => void;
  err: (text: string) => void;
  /** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
  stopped: () => Promise<string>;
}

/** Exit codes: 0 done, 1 it cannot run, 2 the config is wrong. */
export async function serve(options: ServeOptions, around: Surroundings): Promise<number> {
  const checked = loadConfig(options.configFile, options.overrides);
  if (!checked.ok) {
    around.err(formatProblems(checked.problems));
    return 2;
  }
  const { config } = checked;
  if (options.printConfig) around.out(printConfig(config).trimEnd());
  if (options.check) around.out('The config is valid.');
  if (options.printConfig || options.check) return 0;
  const logger = createLogger({ ...config.log, now: around.now });
  try {
    const sidelight = await startSidelight({ ...around, config, logger });
    const at = (address: string, port: number) => address.replace(/:\d+$/, `:${port}`);
    const grpc = at(config.listen.grpc, sidelight.grpcPort);
    const http = at(config.listen.http, sidelight.httpPort);
    logger.info('listening', { grpc, http, version: around.version });
    const signal = await around.stopped();
    logger.info('stopping', { signal });
    await sidelight.close();
    logger.info('stopped');
    return 0;
  } catch (error) {
    if (!(error instanceof SidelightError)) throw error;
    logger.error('start.failed', { error });
    return 1;
  } finally {
    logger.close();
  }
}
