import { type DestinationStream, pino } from 'pino';
import type { Clock } from './clock.ts';
import { SidelightError } from './errors.ts';
import { LogLimit } from './log-limit.ts';

export const logLevels = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Values of a line. An `Error` is written as its code, message, hint and causes; long texts are cut. */
export type LogFields = Record<string, unknown>;

/** One JSON line per event. Event names are stable, dotted, from a fixed set in the code: `discovery.changed`. */
export interface Logger {
  error(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  /** What comes in hundreds a second gives its fields by a function: it is called for a line that is written only. */
  info(event: string, fields?: LogFields | (() => LogFields)): void;
  debug(event: string, fields?: LogFields): void;
  /** Tells what was held back and writes out what is buffered. Never rejects, and takes half a second at most. */
  close(): Promise<void>;
}

export interface LoggerOptions {
  level: LogLevel;
  /** Per event name; what is over it is counted, and told as `suppressed` within about a second. */
  linesPerSecond: number;
  now: Clock;
  /** Where the lines go; stderr unless told otherwise. */
  destination?: DestinationStream;
}

const longestText = 1000;

/** A logger to stderr. It never throws and never blocks: over 1 MiB that nobody reads, lines are dropped. */
export function createLogger(options: LoggerOptions): Logger {
  const stderr = options.destination === undefined ? openStderr() : undefined;
  const sink = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${new Date(options.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ?? stderr,
  );
  const limit = new LogLimit(options.linesPerSecond);
  let timer: NodeJS.Timeout | undefined;

  function tellSuppressed(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const [event, suppressed] of limit.takeSuppressed()) sink.warn({ event, suppressed });
  }

  function write(level: LogLevel, event: string, fields: LogFields | (() => LogFields)): void {
    if (!sink.isLevelEnabled(level)) return;
    const { passes, suppressedBefore } = limit.admit(event, options.now());
    if (suppressedBefore > 0) sink.warn({ event, suppressed: suppressedBefore });
    if (passes) sink[level]({ event, ...printable(typeof fields === 'function' ? fields() : fields) });
    else timer ??= setTimeout(tellSuppressed, 1000).unref();
  }

  return {
    error: (event, fields = {}) => write('error', event, fields),
    warn: (event, fields = {}) => write('warn', event, fields),
    info: (event, fields = {}) => write('info', event, fields),
    debug: (event, fields = {}) => write('debug', event, fields),
    async close() {
      tellSuppressed();
      if (stderr !== undefined) await ended(stderr);
    },
  };
}

/** How long what is buffered may take at the end, ms. */
const longestEndMs = 500;

/** Not by `flushSync`: it tries for ever where nobody is left to read (EPIPE). */
function ended(stderr: ReturnType<typeof openStderr>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, longestEndMs);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    for (const event of ['finish', 'close', 'error'] as const) stderr.once(event, done);
    stderr.end();
  });
}

function openStderr(): ReturnType<typeof pino.destination> {
  const stderr = pino.destination({ dest: 2, sync: false, maxLength: 1 << 20 });
  // Nobody may be left to read stderr (EPIPE). A log that cannot be written must not end the process.
  stderr.on('error', () => undefined);
  return stderr;
}

function printable(fields: LogFields): LogFields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, printableValue(value)]));
}

function printableValue(value: unknown): unknown {
  if (value instanceof Error) return printableError(value, 0);
  return typeof value === 'string' ? cut(value) : value;
}

function printableError(error: Error, depth: number): LogFields {
  const fields: LogFields = { message: cut(error.message) };
  if (error instanceof SidelightError) Object.assign(fields, { code: error.code, hint: error.hint });
  else if ('code' in error) fields['code'] = error.code;
  if (error.cause instanceof Error && depth < 3) fields['cause'] = printableError(error.cause, depth + 1);
  return fields;
}

function cut(text: string): string {
  return text.length <= longestText ? text : `${text.slice(0, longestText)}…`;
}
