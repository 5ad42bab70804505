import { stringify } from 'yaml';
import { startSidelight } from '../../src/cli/serve/sidelight.ts';
import { checkConfig, formatProblems } from '../../src/config/check-config.ts';
import type { ConfigInput } from '../../src/config/schema.ts';
import { type LogFields, type Logger } from '../../src/lib/logger.ts';
import { parsePrometheusText, total } from './prometheus-text.ts';

export interface TestSidelight {
  grpcPort: number;
  httpUrl: string;
  log: { level: string; event: string; fields: LogFields }[];
  get(path: string): Promise<string>;
  json<T>(path: string): Promise<T>;
  /** The sum of a metric's samples whose labels are as given; names as Prometheus has them, labels without `sidelight_`. */
  metric(name: string, labels?: Record<string, string>): Promise<number>;
  close(): Promise<void>;
}

/** The whole service in this process, on free ports, with a short linger and every exchange traced. */
export async function startTestSidelight(
  input: ConfigInput = {},
  env: Record<string, string> = {},
  now: () => number = Date.now,
): Promise<TestSidelight> {
  const checked = checkConfig(
    stringify({
      ...input,
      listen: { grpc: '127.0.0.1:0', http: '127.0.0.1:0', ...input.listen },
      join: { lingerMs: 1001, ...input.join },
      traces: { rootSampleRatio: 1, ...input.traces },
    }),
  );
  if (!checked.ok) throw new Error(formatProblems(checked.problems));
  const log: TestSidelight['log'] = [];
  const running = await startSidelight({
    config: checked.config,
    version: '0.0.0-test',
    env: { OTEL_BSP_SCHEDULE_DELAY: '50', ...env },
    logger: keepingLogger(log),
    now,
    monotonicMs: () => performance.now(),
    random: Math.random,
  });
  const httpUrl = `http://127.0.0.1:${running.httpPort}`;
  const get = async (path: string) => {
    const answer = await fetch(`${httpUrl}${path}`);
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.text();
  };
  return {
    grpcPort: running.grpcPort,
    httpUrl,
    log,
    get,
    json: async <T>(path: string) => JSON.parse(await get(path)) as T,
    metric: async (name, labels = {}) => {
      const prefixed = Object.entries(labels).map(([key, value]) => [`sidelight_${key}`, value]);
      return total(parsePrometheusText(await get('/metrics')), name, Object.fromEntries(prefixed));
    },
    close: () => running.close(),
  };
}

function keepingLogger(log: TestSidelight['log']): Logger {
  const keep =
    (level: string) =>
    (event: string, fields: LogFields | (() => LogFields) = {}) =>
      void log.push({ level, event, fields: typeof fields === 'function' ? fields() : fields });
  return {
    error: keep('error'),
    warn: keep('warn'),
    info: keep('info'),
    debug: keep('debug'),
    close: () => Promise.resolve(),
  };
}
