import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { BlindReason } from '../../src/judge/drain-facts.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import {
  cart,
  type FakeReplica,
  holder,
  leftEndpoint,
  oldEndpoint,
  type Script,
  shop,
  startFakeReplica,
} from '../support/fake-replica.ts';
import { type RunOptions, runDrained } from '../support/run-drained.ts';
import { until } from '../support/until.ts';

/* Against Sidelight's API on real HTTP, as a script answers it. The quiet time is 300 ms. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const start = async (script: Partial<Script> = {}, host?: string, port?: number): Promise<FakeReplica> =>
  cleanup.use(await startFakeReplica(script, host, port));

interface Printed {
  verdict: string;
  exitCode: number;
  endedBy: string;
  quietMs: number;
  longestWaitMs?: number | null;
  connections: { connectionId: string; state: string; requests: number; bytes: number }[];
  moreConnections: number;
  blind: { reason: BlindReason; subject: string; detail: string }[];
  ignored: { id: string; known: boolean }[];
  endpoints: { endpoint: string; requests: number; leftAtMs?: number; lastUsedMs?: number }[];
}

async function json(replicas: readonly FakeReplica[], options: RunOptions = {}): Promise<Printed & { code: number }> {
  const { code, out } = await runDrained(replicas, { ...options, flags: { ...options.flags, json: true } });
  return { code, ...(JSON.parse(out) as Printed) };
}

describe('exit code 0', () => {
  it('quiet for long, and nobody can be there: at once', async () => {
    const replica = await start();
    const { code, out } = await runDrained([replica], { flags: { timeout: '0s' } });
    expect([code, out.split('\n')[0]]).toEqual([
      0,
      'drained: 10.0.0.7 has been quiet for 1m 30s, and no connection seen there can be open',
    ]);
    expect(replica.asked).toContain('/api/v1/endpoints?endpoint=10.0.0.7');
  });

  it('a connection that has outlived its idle timeout is no longer there', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ holders: [holder({ mayBeOpenUntilMs: -1 })] })] });
    expect(await json([replica])).toMatchObject({ code: 0, verdict: 'drained', connections: [] });
  });

  it('waits until the last open connection is gone', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ holders: [holder({ state: 'open', layer: 'tcp' })] })] });
    const run = await runDrained([replica], {
      onErr: () => {
        replica.script.endpoints = [leftEndpoint()];
      },
    });
    expect(run.err[0]).toContain('in use: 1 connection open');
    expect(run.code).toBe(0);
  });

  it('waits for the quiet time after the last use, however long it waited before', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ lastUsedMs: -200 })] });
    const usedAtMs = Date.now() - 200;
    const done = runDrained([replica]);
    // What the script says is an age: let it grow.
    const growing = setInterval(() => {
      replica.script.endpoints = [leftEndpoint({ lastUsedMs: usedAtMs - Date.now() })];
    }, 10);
    cleanup.defer(() => clearInterval(growing));
    expect((await done).code).toBe(0);
    expect(Date.now() - usedAtMs).toBeGreaterThanOrEqual(300);
  });

  it('waits for the end of the longest wait where that comes before the timeout', async () => {
    const endMs = Date.now() + 600;
    const script = () => [
      leftEndpoint({ holders: [holder({ state: 'unseen', mayBeOpenUntilMs: endMs - Date.now() })] }),
    ];
    const replica = await start({ endpoints: script() });
    const growing = setInterval(() => {
      replica.script.endpoints = script();
    }, 10);
    cleanup.defer(() => clearInterval(growing));
    const { code, err } = await runDrained([replica], { flags: { timeout: '5s' } });
    expect(err[0]).toContain('quiet, but 1 connection may be open for 0.');
    expect([code, Date.now() >= endMs]).toEqual([0, true]);
  });

  it('an endpoint that was never listed, and is not used any more', async () => {
    const endpoints = [leftEndpoint({ state: 'unlisted', leftAtMs: undefined, drain: undefined })];
    expect((await json([await start({ endpoints })])).code).toBe(0);
  });
});

describe('exit code 1', () => {
  it('in use until the timeout: says who, over what, and what to do', async () => {
    const advice = { reason: 'tcp_session', changes: ['restart it', 'bound it'] } as const;
    const open = holder({ state: 'open', layer: 'tcp', lastUsedMs: -400, bytes: 3_141_592, advice });
    const replica = await start({ endpoints: [leftEndpoint({ holders: [open], lastUsedMs: -400 })] });
    const { code, out } = await runDrained([replica], { flags: { timeout: '500ms' } });
    expect(code).toBe(1);
    const [first, ...rest] = out.split('\n');
    expect(first).toMatch(/^in use: 10\.0\.0\.7 is not drained; 1 connection open \(after 0\.\ds\)$/);
    expect(rest).toEqual([
      '  payments 10.0.0.7:8080: left 5m ago (dns pay.example.com); since then 7 requests, 2.1 kB; last used 0.4s ago',
      '  shop-1 (shop) tcp connection 41 to 10.0.0.7:8080: open; 10m old, 3.1 MB, last used 0.4s ago',
      '  why: tcp_session (shop-1); what ends it: restart it; or bound it',
    ]);
  });

  it('still listed at the timeout', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ state: 'listed', leftAtMs: undefined })] });
    const run = await json([replica], { flags: { timeout: '200ms' } });
    expect(run).toMatchObject({ code: 1, verdict: 'still_listed', endedBy: 'timeout' });
  });

  it('more open connections than are listed', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ connections: { open: 3, idle: 0, unseen: 0 } })] });
    const run = await json([replica], { flags: { timeout: '200ms' } });
    expect(run).toMatchObject({ code: 1, verdict: 'in_use', moreConnections: 3, longestWaitMs: null });
  });

  it("left, but still in a proxy's own list", async () => {
    const replica = await start({ endpoints: [leftEndpoint({ listedBy: ['node-1', 'node-2'] })] });
    const { code, out } = await runDrained([replica], { flags: { timeout: '200ms' } });
    expect(code).toBe(1);
    expect(out).toContain('; still in the own list of node-1 and 1 other proxy; since then');
  });

  it('left so lately that a proxy may still go by the old answer', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ graceMs: 360_000 })] });
    const { code, out } = await runDrained([replica], { flags: { timeout: '200ms' } });
    expect(code).toBe(1);
    expect(out).toMatch(/left 5m ago \(dns pay\.example\.com\), and may be used by rights for \S+ more/);
  });

  it('left less than the quiet time ago', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ leftAtMs: -5000, lastUsedMs: -90_000 })] });
    const run = await json([replica], { flags: { quietFor: '10s', timeout: '200ms' } });
    expect(run).toMatchObject({ code: 1, verdict: 'in_use' });
  });
});

describe('exit code 4', () => {
  it('quiet, but connections may be open for longer than the timeout: at once, with the longest wait', async () => {
    const holders = [
      holder({ connectionId: '41' }),
      holder({ connectionId: '42', state: 'unseen', mayBeOpenUntilMs: 1_800_000 }),
      holder({ connectionId: '43', mayBeOpenUntilMs: -1 }),
    ];
    const replica = await start({ endpoints: [leftEndpoint({ holders })] });
    const run = await json([replica], { flags: { timeout: '15m' } });
    expect(run).toMatchObject({ code: 4, verdict: 'may_be_open', endedBy: 'verdict' });
    expect(run.connections.map(({ connectionId }) => connectionId)).toEqual(['41', '42']);
    expect(run.longestWaitMs).toBeGreaterThan(3_400_000);
    expect(run.longestWaitMs).toBeLessThanOrEqual(3_501_000);
    const { out } = await runDrained([replica], { flags: { timeout: '15m' } });
    expect(out).toContain('but 2 connections may be open for 58m');
    expect(out).toContain('shop-1 (shop) http connection 42 to 10.0.0.7:8080: unseen, may be open for 30m more');
  });

  it('one that a replica had no room to remember', async () => {
    const forgotten = { mayBeOpenUntilMs: 3_500_000 };
    const replica = await start({ endpoints: [leftEndpoint({ forgotten })] });
    const { code, out } = await runDrained([replica]);
    expect(code).toBe(4);
    expect(out).toMatch(/but forgotten connections may be open for 5\dm/);
    expect(out).toContain('forgotten for want of room (pins.maxConnections)');
  });

  it('one without a limit counts for ever', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ holders: [holder({ mayBeOpenUntilMs: undefined })] })] });
    expect(await json([replica])).toMatchObject({ code: 4, longestWaitMs: null });
  });

  it('more of them than are listed', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ connections: { open: 0, idle: 1, unseen: 4 } })] });
    expect(await json([replica])).toMatchObject({ code: 4, moreConnections: 5, longestWaitMs: null });
  });
});

describe('exit code 3', () => {
  const blindBy: [string, Partial<Script>, BlindReason, Partial<RunOptions>][] = [
    ['the recorder got nothing', { reporters: [] }, 'no_reporter', {}],
    [
      'no proxy at all has a log stream now',
      { reporters: [{ reporter: cart, streams: 0 }], endpoints: [leftEndpoint({ drain: undefined })] },
      'no_reporter',
      {},
    ],
    [
      'one that used the endpoint is silent',
      { reporters: [{ reporter: shop, streams: 0 }, { reporter: cart }] },
      'reporter_silent',
      {},
    ],
    [
      'one that held a connection there is silent, though that must have been closed',
      {
        reporters: [{ reporter: cart }],
        endpoints: [
          leftEndpoint({
            drain: undefined,
            holders: [holder({ state: 'unseen', mayBeOpenUntilMs: -1, reporterConnected: false })],
          }),
        ],
      },
      'reporter_silent',
      {},
    ],
    [
      'one that should report never did',
      { expected: { missing: [{ namespace: 'web', pod: 'late-1' }] } },
      'reporter_missing',
      {},
    ],
    [
      'who should report is not known',
      { expected: { missing: [], stale: true, lastError: '401 Unauthorized' } },
      'expected_unknown',
      {},
    ],
    [
      'a proxy with a config that does not flush long requests',
      { reporters: [{ reporter: shop }, { reporter: cart, configVersion: 1 }] },
      'long_requests_not_flushed',
      {},
    ],
    [
      'a proxy that only tags',
      { reporters: [{ reporter: shop }, { reporter: cart, profile: 'tag', streams: 0 }] },
      'long_requests_not_flushed',
      {},
    ],
    [
      'the source is stale',
      {
        endpoints: [leftEndpoint({ state: 'unknown', reason: 'source_stale', leftAtMs: undefined })],
        clusters: [{ cluster: 'payments', subject: 'pay.example.com', stale: true, lastError: 'SERVFAIL' }],
      },
      'source_blind',
      {},
    ],
    ['nobody knows the endpoint', { endpoints: [] }, 'source_blind', {}],
    ['nobody knows the name', { endpoints: [] }, 'source_blind', { target: 'other.example.com' }],
    ['there is more than an answer holds', { truncated: true }, 'truncated', {}],
    ['there are more reporters than an answer holds', { moreReporters: true }, 'truncated', {}],
    ['the API is another', { instead: (response) => end(response, 404, '{}') }, 'answer_invalid', {}],
    ['garbage', { instead: (response) => end(response, 200, '<html>') }, 'answer_invalid', {}],
    ['half an answer', { instead: (response) => response.destroy() }, 'replica_unreachable', {}],
    [
      '50 MB',
      { instead: (response) => end(response, 200, ' '.repeat(50 << 20)) },
      'answer_invalid',
      { flags: { timeout: '5s', quietFor: '50ms' } },
    ],
  ];

  it.each(blindBy)('%s', async (_, script, reason, options) => {
    const replica = await start(script);
    const run = await json([replica], options);
    expect(run).toMatchObject({ code: 3, verdict: 'blind', endedBy: 'verdict' });
    expect(run.blind.map((one) => one.reason)).toContain(reason);
  });

  it('one that should report and has its log stream to another replica does report', async () => {
    const expected = { missing: [{ namespace: 'web', pod: cart.pod }] };
    const [here, there] = [await start({ expected }), await start({ reporters: [{ reporter: cart }] })];
    expect(await json([here])).toMatchObject({ code: 3, blind: [{ reason: 'reporter_missing', subject: 'cart-1' }] });
    expect(await json([here, there])).toMatchObject({ code: 0, blind: [] });
  });

  it('a replica that nobody listens for, beside a good one', async () => {
    const [replica, gone] = [await start(), await startFakeReplica()];
    await gone.close();
    const run = await json([replica, gone]);
    expect(run).toMatchObject({ code: 3, blind: [{ reason: 'replica_unreachable' }] });
    expect(run.blind[0]?.detail).toContain(`${gone.url}/api/v1/endpoints`);
    expect(run.blind[0]?.detail).toContain('ECONNREFUSED');
  });

  it('a replica that accepts and never answers', async () => {
    const [replica, hanging] = [await start(), await start({ instead: () => {} })];
    const run = await json([replica, hanging], { flags: { timeout: '500ms' } });
    expect(run).toMatchObject({ code: 3, blind: [{ reason: 'replica_unreachable' }] });
    expect(run.blind[0]?.detail).toContain('no answer within 500 ms');
  });

  it('a name that has no address', async () => {
    const replica = { url: 'http://sidelight.test:9464' };
    const resolve = () => Promise.reject(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }));
    const { code, out } = await runDrained([replica], { resolve });
    expect([code, out]).toEqual([3, expect.stringContaining('no answer from http://sidelight.test:9464/: ENOTFOUND')]);
  });

  it('a wrong shape names the URL and the place', async () => {
    const broken = { nowMs: 1, startedMs: 0, truncated: false, endpoints: [{ cluster: 'payments', endpoint: 7 }] };
    const replica = await start({ instead: (response) => end(response, 200, JSON.stringify(broken)) });
    const { out } = await runDrained([replica]);
    expect(out).toContain(`${replica.url}/api/v1/endpoints?endpoint=10.0.0.7: endpoints[0].endpoint: `);
  });

  it('a replica that began after the endpoint left, and remembers nothing of that', async () => {
    const known = await start();
    const restarted = await start({ endpoints: [], upForMs: 60_000 });
    const run = await json([known, restarted]);
    expect(run).toMatchObject({ code: 3, blind: [{ reason: 'replica_restarted' }] });
  });

  it('a load balancer before several replicas, taken for one', async () => {
    const replica = await start();
    let turn = 0;
    // Each process has its own start.
    Object.defineProperty(replica.script, 'upForMs', { get: () => 86_400_000 + 1000 * (turn++ % 3 === 0 ? 1 : 0) });
    const run = await json([replica], { flags: { timeout: '5s' } });
    expect(run.blind.map(({ detail }) => detail).join()).toContain('different replicas answer by turns');
    expect(run.code).toBe(3);
  });

  it('is not said for a moment of blindness', async () => {
    const replica = await start({ instead: (response) => end(response, 503, '') });
    const run = await runDrained([replica], { onErr: () => delete replica.script.instead });
    expect(run.err[0]).toContain('HTTP 503');
    expect(run.code).toBe(0);
  });
});

describe('a replica that restarted', () => {
  it('with its state file is believed after the quiet time', async () => {
    const replica = await start({ upForMs: 0 });
    const run = await json([replica]);
    expect(run).toMatchObject({ code: 0, verdict: 'drained' });
    expect(run.quietMs).toBeLessThan(1500);
  });

  it('is waited for, and its connections of before are not forgotten', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ holders: [holder({ state: 'open' })] })] });
    const run = await json([replica], {
      onErr: () => Object.assign(replica.script, { upForMs: 0, endpoints: [leftEndpoint()] }),
    });
    expect(run).toMatchObject({ code: 4, connections: [{ connectionId: '41', state: 'unseen' }] });
  });

  it('comes back after a while, and the wait goes on', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ holders: [holder({ state: 'open', layer: 'tcp' })] })] });
    await replica.close();
    let isBack = false;
    const { code, err } = await runDrained([replica], {
      flags: { quietFor: '1500ms', timeout: '10s' },
      onErr: () => {
        if (!isBack) void start({}, '127.0.0.1', replica.port);
        isBack = true;
      },
    });
    expect([code, err[0]]).toEqual([0, expect.stringContaining('ECONNREFUSED')]);
  });
});

describe('several replicas', () => {
  it('a connection whose log stream moved counts once, as the one that heard of it last says', async () => {
    const before = holder({ state: 'unseen', reporterConnected: false, requests: 5, bytes: 500, lastUsedMs: -100_000 });
    const after = holder({ openedMs: -600_900, requests: 7, bytes: 700, lastUsedMs: -95_000, mayBeOpenUntilMs: -1 });
    const replicas = [
      await start({ endpoints: [leftEndpoint({ holders: [before] })] }),
      await start({ endpoints: [leftEndpoint({ holders: [after] })] }),
    ];
    expect(await json(replicas)).toMatchObject({ code: 0 });
    Object.assign(after, { mayBeOpenUntilMs: 3_000_000 });
    expect(await json(replicas)).toMatchObject({ code: 4, connections: [{ requests: 12, bytes: 1200 }] });
    expect((await json(replicas)).endpoints).toMatchObject([{ endpoint: oldEndpoint, requests: 14 }]);
  });

  it('one that is open somewhere is open, though another replica saw it used later', async () => {
    const wandered = holder({ layer: 'tcp', state: 'unseen', reporterConnected: false, mayBeOpenUntilMs: -1 });
    const replicas = [
      await start({ endpoints: [leftEndpoint({ holders: [wandered] })] }),
      await start({ endpoints: [leftEndpoint({ holders: [{ ...wandered, state: 'open', lastUsedMs: -160_000 }] })] }),
    ];
    const flags = { timeout: '200ms' };
    expect(await json(replicas, { flags })).toMatchObject({ code: 1, connections: [{ state: 'open' }] });
    expect(await json(replicas.toReversed(), { flags })).toMatchObject({ code: 1, connections: [{ state: 'open' }] });
  });

  it('the same number of another connection, opened at another time, counts too', async () => {
    const replicas = [
      await start({ endpoints: [leftEndpoint({ holders: [holder()] })] }),
      await start({ endpoints: [leftEndpoint({ holders: [holder({ openedMs: -700_000 })] })] }),
    ];
    expect((await json(replicas)).connections).toHaveLength(2);
  });

  it('one that another replica saw close is closed', async () => {
    const unseen = holder({ state: 'unseen', layer: 'tcp', reporterConnected: false });
    const one = await start({ endpoints: [leftEndpoint({ holders: [unseen] })] });
    const closing = { connectionId: '41', openedMs: -600_500, clearedMs: -95_000 };
    const other = await start({ closed: [closing] });
    expect((await json([one, other])).code).toBe(0);
    for (const another of [{ how: 'quiet' }, { reporter: cart }, { openedMs: -700_000 }, { connectionId: '4' }]) {
      other.script.closed = [{ ...closing, ...another }];
      expect((await json([one, other])).code).toBe(4);
    }
  });

  it('a stream to any of them is enough', async () => {
    const replicas = [await start({ reporters: [{ reporter: shop, streams: 0 }] }), await start()];
    expect((await json(replicas)).code).toBe(0);
  });

  it('one of them still lists the endpoint', async () => {
    const replicas = [await start(), await start({ endpoints: [leftEndpoint({ state: 'listed' })] })];
    expect(await json(replicas, { flags: { timeout: '200ms' } })).toMatchObject({ code: 1, verdict: 'still_listed' });
  });

  it('one of them knows nothing of the cluster', async () => {
    expect((await json([await start(), await start({ endpoints: [], clusters: [] })])).code).toBe(0);
  });

  it('clocks that are hours apart change nothing', async () => {
    const used = leftEndpoint({ holders: [holder({ mayBeOpenUntilMs: 120_000 })] });
    const replicas = [
      await start({ skewMs: 7_200_000, endpoints: [used] }),
      await start({ skewMs: -10_800_000, endpoints: [used] }),
    ];
    const run = await json(replicas);
    expect(run).toMatchObject({ code: 4, connections: [{ connectionId: '41' }] });
    expect(Math.abs((run.longestWaitMs ?? 0) - 120_000)).toBeLessThan(2000);
    expect(Math.abs(run.quietMs - 90_000)).toBeLessThan(2000);
  });

  it('all addresses of a name are asked, anew each time, and one that left it for good is not waited for', async () => {
    const one = await start({}, '127.0.0.1');
    const two = await start(
      { endpoints: [leftEndpoint({ holders: [holder({ state: 'open' })] })] },
      '127.0.0.2',
      one.port,
    );
    const addresses = ['127.0.0.1', '127.0.0.2', '::1'];
    const run = await json([{ ...one, url: `http://sidelight.test:${one.port}` }], {
      resolve: () => Promise.resolve(addresses),
      onErr: () => {
        if (addresses.length === 1) return;
        addresses.length = 1;
        void two.close();
      },
    });
    // What it heard last is lost, so the quiet time began anew; and the connection that it told of may be open.
    expect(run).toMatchObject({ code: 4, connections: [{ connectionId: '41', state: 'unseen' }] });
    expect(run.quietMs).toBeLessThan(1500);
  });

  it('one that left its name, but still answers, is still asked', async () => {
    const one = await start({}, '127.0.0.1');
    await start({ endpoints: [leftEndpoint({ holders: [holder({ state: 'open' })] })] }, '127.0.0.2', one.port);
    const addresses = ['127.0.0.1', '127.0.0.2'];
    const run = await json([{ ...one, url: `http://sidelight.test:${one.port}` }], {
      flags: { timeout: '700ms' },
      resolve: () => Promise.resolve(addresses),
      onErr: () => {
        addresses.length = 1;
      },
    });
    expect(run).toMatchObject({ code: 1, verdict: 'in_use' });
  });
});

describe('a host name', () => {
  const host = { target: 'pay.example.com' };
  const next = leftEndpoint({ endpoint: '10.0.0.8:8080', state: 'listed', leftAtMs: undefined });

  it('means all endpoints that left it', async () => {
    const other = leftEndpoint({ endpoint: '10.0.0.9:8080', holders: [holder({ state: 'open' })] });
    const replica = await start({ endpoints: [leftEndpoint(), next, other] });
    const run = await json([replica], { ...host, flags: { timeout: '200ms' } });
    expect(run.code).toBe(1);
    expect(run.endpoints.map(({ endpoint }) => endpoint)).toEqual([oldEndpoint, '10.0.0.9:8080']);
    expect(replica.asked).toContain('/api/v1/endpoints?host=pay.example.com');
    replica.script.endpoints = [leftEndpoint(), next];
    expect((await json([replica], host)).code).toBe(0);
  });

  it('is still listed while none has left', async () => {
    const replica = await start({ endpoints: [next] });
    const options = { ...host, flags: { timeout: '200ms' } };
    expect(await json([replica], options)).toMatchObject({ code: 1, verdict: 'still_listed' });
    replica.script.endpoints = [];
    expect(await json([replica], options)).toMatchObject({ code: 1, verdict: 'still_listed' });
  });

  it('what one cluster still lists has not left, though another dropped it', async () => {
    const elsewhere = leftEndpoint({ cluster: 'payments-tls', state: 'listed' });
    const run = await json([await start({ endpoints: [leftEndpoint(), elsewhere, next] })], {
      ...host,
      flags: { timeout: '200ms' },
    });
    expect(run).toMatchObject({ code: 1, verdict: 'still_listed' });
  });
});

describe('--ignore-reporter', () => {
  it('neither its silence nor its connections count, and the output says so', async () => {
    const replica = await start({
      reporters: [{ reporter: shop, streams: 0 }],
      endpoints: [leftEndpoint({ holders: [holder({ state: 'unseen', reporterConnected: false })] })],
    });
    expect((await json([replica])).code).toBe(3);
    for (const id of [shop.pod, shop.nodeId]) {
      const { code, out } = await runDrained([replica], { flags: { ignoreReporter: [id] } });
      expect([code, out]).toEqual([0, expect.stringContaining(`taken as gone: ${id}`)]);
    }
  });

  it('a slip in it is told', async () => {
    const { out } = await runDrained([await start()], { flags: { ignoreReporter: ['shop-9'] } });
    expect(out).toContain('--ignore-reporter shop-9: no reporter is called so');
  });
});

describe('signals', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('%s ends it with %i, and the last state is printed', async (signal, expected) => {
    const replica = await start({ endpoints: [leftEndpoint({ holders: [holder({ state: 'open' })] })] });
    let stop: (name: string) => void = () => {};
    const stopped = new Promise<string>((resolve) => {
      stop = resolve;
    });
    const { code, out } = await runDrained([replica], {
      flags: { timeout: '15m' },
      stopped,
      onErr: () => stop(signal),
    });
    expect([code, out]).toEqual([expected, expect.stringMatching(`^in use: .*${signal} after`)]);
    expect(out).toContain('http connection 41');
  });

  it('before the first answer it says that nothing is known', async () => {
    const replica = await start({ instead: () => {} });
    const stopped = until('a question', () => replica.asked.length > 0).then(() => 'SIGTERM');
    const { code, out } = await runDrained([replica], { stopped });
    expect([code, out]).toEqual([143, expect.stringContaining('unknown: whether 10.0.0.7 is drained cannot be known')]);
  });
});

describe('what is printed', () => {
  it('progress is one line when it changes, and no more', async () => {
    const replica = await start({ endpoints: [leftEndpoint({ state: 'listed' })] });
    const { err } = await runDrained([replica], { flags: { timeout: '600ms' } });
    expect(err).toEqual(['10.0.0.7: still listed']);
  });

  it('names that a proxy chose cannot steer the terminal', async () => {
    const reporter = { ...shop, pod: 'shop\u001b[2J\u202e', nodeId: 'x' };
    const open = holder({ state: 'open', reporter });
    const { out, err } = await runDrained(
      [await start({ endpoints: [leftEndpoint({ holders: [open] })], reporters: [{ reporter }] })],
      { flags: { timeout: '100ms' } },
    );
    expect(`${out}${err.join('')}`).not.toMatch(/\p{Cc}(?<!\n)|\p{Cf}/u);
    expect(out).toContain('shop�[2J�');
  });

  it('twenty connections and the number of the rest', async () => {
    const holders = Array.from({ length: 25 }, (_, index) => holder({ connectionId: String(index) }));
    const { out } = await runDrained([await start({ endpoints: [leftEndpoint({ holders })] })]);
    expect(out.split('\n').filter((line) => line.includes('connection '))).toHaveLength(20);
    expect(out).toContain('and 5 more (--json has all)');
  });
});

describe('wrong arguments', () => {
  it('every mistake at once, exit code 2, and nobody is asked', async () => {
    const { code, err, out } = await runDrained([], {
      target: '10.0.0.256',
      flags: { quietFor: '0s', timeout: 'soon', from: ['sidelight:9464', 'http://a/?b'], ignoreReporter: [''] },
    });
    expect([code, out]).toEqual([2, '']);
    expect(err.join('\n').split('\n')).toEqual([
      'sidelight drained: ENDPOINT|HOST: found "10.0.0.256": expected IP, IP:port, [v6]:port, or a DNS name without a port',
      'sidelight drained: --quiet-for: found "0s": expected more than 0',
      'sidelight drained: --timeout: found "soon": expected a duration such as 500ms, 60s, 15m or 1h',
      'sidelight drained: --from: found "sidelight:9464": expected a URL such as http://sidelight:9464, without a query',
      'sidelight drained: --from: found "http://a/?b": expected a URL such as http://sidelight:9464, without a query',
      'sidelight drained: --ignore-reporter: found "": expected a node id or a pod',
    ]);
  });
});

function end(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status);
  response.end(body);
}

it('a TCP connection whose log stream is being balanced anew is in use, not quiet', async () => {
  const open = holder({ layer: 'tcp', state: 'open' });
  const moving = holder({ layer: 'tcp', state: 'unseen', reporterConnected: true });
  const replica = cleanup.use(await startFakeReplica({ endpoints: [leftEndpoint({ holders: [moving] })] }));
  // Envoy tells of it at its next periodic entry, 5 s at most.
  const told = setTimeout(() => (replica.script.endpoints = [leftEndpoint({ holders: [open] })]), 1000);
  cleanup.defer(() => clearTimeout(told));
  const { code } = await runDrained([replica], { flags: { timeout: '3s' } });
  expect(code).toBe(1);
});
