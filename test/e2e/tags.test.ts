import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { http2Client } from '../../src/lab/http2-client.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { cases } from '../fixtures/cases/index.ts';
import { failover, ok, retry, retryAtNextPriority, toApp, unavailable } from '../fixtures/cases/parts.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { startSilentService } from '../support/silent-service.ts';
import { type LogLine, startLoggingEnvoy, startScene } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/*
 * What the tagger's answers do to requests, seen from outside: in the access log that Envoy itself writes, at the client,
 * and at the upstream.
 */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const ours = (headers: object): string[] => Object.keys(headers).filter((name) => name.startsWith('x-sidelight'));
const allHeaders = [
  'attempts',
  'cluster',
  'connection-age-ms',
  'connection-id',
  'endpoint',
  'pin',
  'profile',
  'retried',
];
const everyHeader = allHeaders.map((name) => `x-sidelight-${name}`);

describe.each(['full', 'tag'] as const)('dynamic metadata in profile %s', (profile) => {
  it('has every tag, typed, as Envoy itself logs it: also of a reused connection and of a retry elsewhere', async () => {
    const port = await freePort(['127.0.0.11', '127.0.0.12']);
    const [first, second] = [`127.0.0.11:${port}`, `127.0.0.12:${port}`] as const;
    const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ clusters: { app: [first, second] } }));
    const sidelight = cleanup.use(await startTestSidelight({ discovery: { file } }));
    cleanup.use(
      await Upstreams.start({
        ips: ['127.0.0.11', '127.0.0.12'],
        port,
        handler: ({ path: asked, ip }) => (asked === '/retried' && ip === '127.0.0.11' ? unavailable : ok),
      }),
    );
    const envoy = await startLoggingEnvoy(cleanup, `metadata-${profile}`, {
      base: profile,
      sidelightPort: sidelight.grpcPort,
      clusters: [failover(first, second, staticCluster([], { name: 'app' }))],
      routes: [toApp(retry('5xx', retryAtNextPriority))],
    });
    const client = cleanup.use(http1Client(envoy.port('http')));
    await client.request('/new');
    await sleep(100);
    await client.request('/reused');
    await client.request('/retried');

    const [fresh, reused, retried] = (await envoy.lines(3)) as [LogLine, LogLine, LogLine];
    const tags = { cluster: 'app', attempts: 1, retried: false, pin: 'current', profile };
    const ofConnection = ({ connectionId }: LogLine) => ({
      connection_id: String(connectionId),
      connection_age_ms: expect.any(Number),
    });
    expect(fresh.sidelight).toEqual({ ...tags, endpoint: first, ...ofConnection(fresh) });
    expect(reused.sidelight).toEqual({ ...tags, endpoint: first, ...ofConnection(reused) });
    expect(retried.sidelight).toEqual({
      ...tags,
      endpoint: second,
      attempts: 2,
      retried: true,
      ...ofConnection(retried),
    });
    expect(fresh.connectionId).toBeGreaterThan(0);
    expect([reused.connectionId, retried.connectionId === fresh.connectionId]).toEqual([fresh.connectionId, false]);
    const grown = Number(reused.sidelight?.['connection_age_ms']) - Number(fresh.sidelight?.['connection_age_ms']);
    expect(grown).toBeGreaterThan(90);
  });
});

/** Envoy counts a try that found no host or no room, and may name a host that it never reached. */
const nobody = { attempts: 0, retried: false, pin: 'unknown', profile: 'tag' };
const madeByEnvoy: Record<string, object> = {
  'direct-response': nobody,
  'no-route': nobody,
  'redirect-by-route': nobody,
  'no-healthy-host': { ...nobody, cluster: 'app' },
  'grpc-no-healthy-host': { ...nobody, cluster: 'app' },
  'unauthorized-by-earlier-filter': { ...nobody, cluster: 'app' },
  'pool-overflow-max-pending': { ...nobody, cluster: 'app' },
  'pool-overflow-max-requests': { ...nobody, cluster: 'app' },
  'refused-not-retried': { ...nobody, cluster: 'app', attempts: 1, endpoint: expect.any(String) },
  'refused-exhausted': { ...nobody, cluster: 'app', attempts: 3, retried: true, endpoint: expect.any(String) },
};

describe.concurrent('the tags of a reply that Envoy made itself claim no attempt, connection or age that was not', () => {
  it.each(Object.entries(madeByEnvoy))('%s', async (name, expected) => {
    const own = new Cleanup();
    try {
      const make = cases[name];
      if (make === undefined) throw new Error(`no case ${name}`);
      const { config, run } = await make(own);
      const sidelight = own.use(await startTestSidelight());
      const envoy = await startLoggingEnvoy(own, name, {
        base: 'tag',
        sidelightPort: sidelight.grpcPort,
        ...config,
      });
      await run(envoy);
      // Of the overflow the refused request ends first, and the one that kept it out is none of Envoy's own.
      const [line] = await envoy.lines(1);
      expect(line?.sidelight).toEqual(expected);
      expect(await sidelight.metric('sidelight_retried_requests_total')).toBe(name === 'refused-exhausted' ? 1 : 0);
    } finally {
      await own.run();
    }
  });
});

it('how long an answer took is told, once for each message', async () => {
  const { client, sidelight } = await startScene(cleanup, { name: 'timed', base: 'full' });
  for (let i = 0; i < 5; i += 1) await client.request('/');
  await until('five answers', async () => (await sidelight.metric('sidelight_self_tag_duration_seconds_count')) === 5);
  expect(await sidelight.metric('sidelight_self_tag_duration_seconds_sum')).toBeGreaterThan(0);
});

it('a retry that finds its only host ejected is no attempt: the tags are those of the one that was', async () => {
  const { client, envoy, arrived } = await startScene(cleanup, {
    name: 'ejected',
    base: 'tag',
    handler: () => ({ kind: 'respond', status: 503, headers: { 'retry-after': '1' } }),
    // Ejecting takes a moment, so the retry must be told to wait.
    routes: [
      toApp(
        retry('5xx', { rate_limited_retry_back_off: { reset_headers: [{ name: 'retry-after', format: 'SECONDS' }] } }),
      ),
    ],
    adapt: (_, config) => {
      const app = config.static_resources.clusters.find(({ name }) => name === 'app');
      Object.assign(app ?? {}, {
        outlier_detection: { consecutive_5xx: 1, base_ejection_time: '30s', max_ejection_percent: 100 },
        common_lb_config: { healthy_panic_threshold: { value: 0 } },
      });
    },
  });
  await client.request('/');
  const [line] = await envoy.lines(1);
  expect([line?.code, line?.attempts, arrived.length]).toEqual([503, 2, 1]);
  expect(line?.sidelight).toEqual({
    ...nobody,
    cluster: 'app',
    attempts: 1,
    endpoint: line?.upstream,
    connection_id: String(line?.connectionId),
    connection_age_ms: expect.any(Number),
  });
});

const forged = { 'x-sidelight-internal-connection-id': '666', 'x-sidelight-internal-connection-age-us': '6660000' };
const debugSecret = 'correct-horse-battery';

describe('response headers', () => {
  it('never, the default: none of ours reaches the client, whatever it asks for', async () => {
    const { client } = await startScene(cleanup, { name: 'never', base: 'full', config: { tagging: { debugSecret } } });
    const { status, headers } = await client.request('/', { headers: { 'x-sidelight-debug': debugSecret } });
    expect([status, ours(headers)]).toEqual([200, []]);
  });

  it('on_request: all for who has the secret, none for anybody else', async () => {
    const tagging = { responseHeaders: 'on_request', debugSecret } as const;
    const { client } = await startScene(cleanup, { name: 'on-request', base: 'full', config: { tagging } });
    const asked = async (secret?: string) => {
      const headers: Record<string, string> = secret === undefined ? {} : { 'x-sidelight-debug': secret };
      return ours((await client.request('/', { headers })).headers).toSorted();
    };
    expect(await asked(debugSecret)).toEqual(everyHeader);
    expect(await asked(`${debugSecret}!`)).toEqual([]);
    expect(await asked(debugSecret.slice(0, -1))).toEqual([]);
    expect(await asked('')).toEqual([]);
    expect(await asked()).toEqual([]);
  });

  it('always: each with the value of its tag', async () => {
    const { client, envoy } = await startScene(cleanup, {
      name: 'always',
      base: 'tag',
      config: { tagging: { responseHeaders: 'always' } },
    });
    const { headers } = await client.request('/');
    const [line] = await envoy.lines(1);
    const tags = Object.entries(line?.sidelight ?? {});
    expect(ours(headers).toSorted()).toEqual(everyHeader);
    expect(headers).toMatchObject(
      Object.fromEntries(tags.map(([name, value]) => [`x-sidelight-${name.replaceAll('_', '-')}`, String(value)])),
    );
  });

  it('an upstream that sends the internal headers itself neither wins nor gets them through', async () => {
    const { client, envoy } = await startScene(cleanup, {
      name: 'forged',
      base: 'full',
      config: { tagging: { responseHeaders: 'always' } },
      handler: () => ({ kind: 'respond', status: 200, headers: { ...forged, 'x-sidelight-connection-id': '666' } }),
    });
    const { headers } = await client.request('/');
    const [line] = await envoy.lines(1);
    expect(ours(headers).toSorted()).toEqual(everyHeader);
    expect(headers['x-sidelight-connection-id']).toBe(String(line?.connectionId));
    expect(line?.connectionId).not.toBe(666);
    expect(Number(headers['x-sidelight-connection-age-ms'])).toBeLessThan(6660);
  });
});

it('a key that the client sends is overwritten, and two requests never have the same', async () => {
  const { client, arrived, envoy } = await startScene(cleanup, { name: 'key', base: 'tag' });
  await client.request('/', { headers: { 'x-sidelight-key': 'mine' } });
  // Sent as two headers of one name.
  const twice = ['mine', 'mine too'] as unknown as string;
  await client.request('/', { headers: { 'x-sidelight-key': twice } });
  const keys = arrived.map(({ headers }) => headers['x-sidelight-key']);
  expect(keys).toEqual([expect.stringMatching(/^\d+\.\d{19}$/), expect.stringMatching(/^\d+\.\d{19}$/)]);
  expect(new Set(keys).size).toBe(2);
  expect((await envoy.lines(2)).map(({ key }) => key)).toEqual(keys);
});

it('twenty concurrent streams of one HTTP/2 connection have each its own tags', async () => {
  const { envoy } = await startScene(cleanup, {
    name: 'streams',
    base: 'full',
    config: { tagging: { responseHeaders: 'always' } },
    handler: ({ path: asked, headers }) => {
      const [, times] = asked.split('/').map(Number);
      return Number(headers['x-envoy-attempt-count']) < (times ?? 1) ? unavailable : { ...ok, delayMs: 100 };
    },
    routes: [toApp(retry('5xx'))],
    adapt: (_, config) => {
      // By default only three retries may run at once.
      const app = config.static_resources.clusters.find(({ name }) => name === 'app');
      Object.assign(app ?? {}, { circuit_breakers: { thresholds: [{ max_retries: 100 }] } });
    },
  });
  const client = cleanup.use(await http2Client(envoy.port('http')));
  const sent = Array.from({ length: 20 }, (_, index) => ({
    attempts: (index % 3) + 1,
    path: `/${(index % 3) + 1}/${index}`,
  }));
  const results = await Promise.all(sent.map(({ path: asked }) => client.request(asked)));
  expect(results.map(({ headers }) => headers['x-sidelight-attempts'])).toEqual(
    sent.map(({ attempts }) => String(attempts)),
  );
  const lines = await envoy.lines(20);
  const tagOf = (asked: string) => lines.find((line) => line.path === asked);
  expect(sent.map(({ path: asked }) => tagOf(asked)?.sidelight?.['attempts'])).toEqual(
    sent.map(({ attempts }) => attempts),
  );
  expect(lines.map(({ sidelight }) => sidelight?.['connection_id'])).toEqual(
    lines.map(({ connectionId }) => String(connectionId)),
  );
  expect(new Set(lines.map(({ connectionId }) => connectionId)).size).toBeGreaterThan(1);
});

describe('without an answer the client gets what the upstream sent, with no internal header and no tag', () => {
  const respond = () => ({ kind: 'respond', status: 200, headers: forged }) as const;

  it('when nobody listens', async () => {
    const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11'], handler: respond }));
    const envoy = await startLoggingEnvoy(cleanup, 'nobody', {
      base: 'full',
      sidelightPort: await freePort(),
      clusters: [staticCluster(upstreams.addresses, { name: 'app' })],
      served: false,
    });
    const client = cleanup.use(http1Client(envoy.port('http')));
    const { status, headers } = await client.request('/');
    expect([status, ours(headers), (await envoy.lines(1))[0]?.sidelight]).toEqual([200, [], null]);
    expect(await envoy.admin.stat('http.http.ext_proc.sidelight.failure_mode_allowed')).toBe(1);
  });

  it('when the service is slower than the message timeout', async () => {
    const silent = cleanup.use(await startSilentService());
    const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11'], handler: respond }));
    const envoy = await startLoggingEnvoy(cleanup, 'silent', {
      base: 'full',
      inject: true,
      sidelightPort: silent.port,
      messageTimeoutMs: 200,
      clusters: [staticCluster(upstreams.addresses, { name: 'app' })],
    });
    const client = cleanup.use(http1Client(envoy.port('http')));
    const { status, headers } = await client.request('/');
    expect([status, ours(headers), (await envoy.lines(1))[0]?.sidelight]).toEqual([200, [], null]);
    expect(await envoy.admin.stat('http.http.ext_proc.sidelight.message_timeouts')).toBe(1);
  });
});
