import { describe, expect, test } from 'vitest';
import { checkConfig, formatProblems } from '../../src/config/check-config.ts';
import { loadConfig } from '../../src/config/load-config.ts';

function configOf(text: string, overrides = {}) {
  const checked = checkConfig(text, overrides);
  if (!checked.ok) throw new Error(formatProblems(checked.problems));
  return checked.config;
}

function problemsOf(text: string, overrides = {}) {
  const checked = checkConfig(text, overrides);
  return checked.ok ? [] : checked.problems;
}

test('an empty text is the defaults', () => {
  expect(configOf('')).toEqual({
    listen: { grpc: '127.0.0.1:50051', http: '127.0.0.1:9464' },
    tagging: { responseHeaders: 'never' },
    success: {
      httpFailFrom: 500,
      grpcFail: ['UNKNOWN', 'DEADLINE_EXCEEDED', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS'],
    },
    clusters: [],
    discovery: {
      kubernetes: { enabled: false, expectedReporters: [], watchMs: 20_000, timeoutMs: 10_000, staleAfterMs: 60_000 },
      dns: {
        enabled: true,
        servers: [],
        sameResolverAsProxy: false,
        refreshMs: 5000,
        timeoutMs: 2000,
        staleAfterMs: 60_000,
        ask: 'first',
        maxHosts: 1000,
      },
      envoyAdmin: { urls: [], refreshMs: 5000, timeoutMs: 2000, staleAfterMs: 60_000 },
      fileStaleAfterMs: 60_000,
      maxLeftPerCluster: 1000,
    },
    join: {
      lingerMs: 2500,
      maxWaitMs: 900_000,
      maxExchanges: 50_000,
      maxAttemptsPerExchange: 64,
      streamMaxAgeMs: 300_000,
    },
    pins: { maxConnections: 20_000, quietMs: 60_000 },
    traces: { rootSampleRatio: 0.05, keepPerSecond: 5, keepBurst: 20, slowMs: 1000 },
    page: { enabled: true, quietForMs: 60_000 },
    otlp: { protocol: 'grpc', intervalMs: 10_000 },
    limits: {
      messageBytes: 1_048_576,
      tagsPerEntry: 64,
      headerBytes: 16_384,
      textBytes: 256,
      clusters: 4000,
      endpoints: 10_000,
      reporters: 2000,
      logStreams: 20_000,
      processStreams: 10_000,
      recentExchanges: 500,
    },
    log: { level: 'info', linesPerSecond: 10 },
    shutdownMs: 10_000,
  });
});

test('what is written wins over the default, an override wins over both, and neither touches its neighbours', () => {
  const config = configOf('join: {lingerMs: 3000, maxExchanges: 7}\nlog: {level: debug}', {
    join: { lingerMs: 4000, maxExchanges: undefined },
    otlp: { endpoint: 'http://127.0.0.1:4317' },
  });
  expect(config.join).toMatchObject({ lingerMs: 4000, maxExchanges: 7, maxWaitMs: 900_000 });
  expect(config.otlp).toMatchObject({ endpoint: 'http://127.0.0.1:4317', protocol: 'grpc' });
  expect(config.log.level).toBe('debug');
});

test('every problem is told at once: line, path, value, what was expected', () => {
  const text = `
listen: {grpc: nowhere}
join:
  lingerMs: 5
  linger_ms: 3000
  colour: red
clusters:
  - match: a
    success: {grpcFail: [99]}
  - host: "a b"
discovery: {dns: {refreshMs: 70000}}
`;
  expect(formatProblems(problemsOf(text, { log: { level: 'loud' } })).split('\n')).toEqual([
    'line 2: listen.grpc: found "nowhere": expected host:port, [v6]:port, port 0 to 65535, or unix:/path, of 107 bytes at most',
    expect.stringMatching(
      /^line 9: clusters\[0\]\.success\.grpcFail\[0\]: found 99: expected one of OK, .*, or whole number, 0 to 16$/,
    ),
    'line 10: clusters[1].match: expected text of 1 to 512 characters',
    'line 10: clusters[1].host: found "a b": expected DNS name',
    'line 11: discovery.dns.staleAfterMs: expected more than refreshMs + timeoutMs, or every view is stale between two answers',
    'line 4: join.lingerMs: found 5: expected whole number, 1001 to 60000 (ms)',
    'line 5: join.linger_ms: expected a known key, perhaps lingerMs',
    'line 6: join.colour: expected a known key: lingerMs, maxWaitMs, maxExchanges, maxAttemptsPerExchange, streamMaxAgeMs',
    'log.level: found "loud": expected one of error, warn, info, debug',
  ]);
});

describe('tagging on_request', () => {
  test('needs a secret', () => {
    expect(problemsOf('tagging: {responseHeaders: on_request}')).toMatchObject([
      { path: 'tagging.debugSecret', expected: expect.stringContaining('a secret of 16 to 256 characters') },
    ]);
  });

  test('needs one of 16 characters, and a short one is not repeated', () => {
    const problems = problemsOf('tagging: {responseHeaders: on_request, debugSecret: hunter2}');
    expect(problems).toMatchObject([{ path: 'tagging.debugSecret', expected: 'text of 16 to 256 characters' }]);
    expect(JSON.stringify(problems)).not.toContain('hunter2');
  });

  test('is taken with one', () => {
    expect(configOf('tagging: {responseHeaders: on_request, debugSecret: 0123456789abcdef}').tagging).toEqual({
      responseHeaders: 'on_request',
      debugSecret: '0123456789abcdef',
    });
  });
});

test.each([
  ['not YAML', 'a: [', /^line 1: expected YAML: /],
  ['a key twice', 'log: {}\nlog: {}', /^line 2: expected YAML: Map keys must be unique$/],
  ['a list', '[]', /^found \[\]: expected mapping with listen, /],
  ['a word', 'hello', /^found "hello": expected mapping with listen, /],
  ['an empty section', 'log:', /^line 1: log: found null: expected mapping with level, linesPerSecond$/],
  ['two listeners on one address', 'listen: {grpc: "h:1", http: "h:1"}', /listen\.http: .*another address/],
  ['a pattern of aliases that multiplies', bomb(), /expected YAML: /],
])('%s is a problem, never a throw', (_name, text, message) => {
  expect(formatProblems(problemsOf(text))).toMatch(message);
});

function bomb(): string {
  const levels = 'abcdefghij'.split('');
  const line = (level: string, index: number) => {
    const inner = index === 0 ? 'x' : `*${levels[index - 1]}`;
    return `${level}: &${level} [${Array(10).fill(inner).join(', ')}]`;
  };
  return levels.map(line).join('\n');
}

test('a file that cannot be read is config_unreadable, and its cause is kept', () => {
  expect(() => loadConfig('/nonexistent/sidelight.yaml')).toThrow(
    expect.objectContaining({ code: 'config_unreadable', cause: expect.objectContaining({ code: 'ENOENT' }) }),
  );
});
