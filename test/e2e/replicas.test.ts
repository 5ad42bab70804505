import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { dnsCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { tcpClient } from '../../src/lab/tcp-client.ts';
import { startTcpEcho } from '../../src/lab/tcp-echo.ts';
import type { HolderState } from '../../src/model/endpoint-report.ts';
import { asksFor, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { endpointOf, eventsOf, keepSending, pinsOf, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* Two replicas that share nothing, and log streams that end every second: Envoy opens each anew at either of them. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const cluster = 'moving';
const graceMs = 500;
/** Envoy sends at each beat, not for want of room: what it sends while a stream's end is under way is lost. */
const logFlushMs = 500;
/** Between two periodic entries. */
const periodMs = 200;

async function startReplicas(dns: DnsServer) {
  const config = { ...asksFor([cluster], dns, graceMs), join: { streamMaxAgeMs: 1000 } };
  return [cleanup.use(await startTestSidelight(config)), cleanup.use(await startTestSidelight(config))] as const;
}

/** What both replicas say, in one moment or nearly. */
async function ask(replicas: readonly TestSidelight[], endpoint: string) {
  const begun = performance.now();
  const both = await Promise.all(
    replicas.map(async (replica) => {
      const [stale, old] = await Promise.all([
        replica.metric('sidelight_pins', { cluster, pin: 'stale' }),
        endpointOf(replica, cluster, endpoint),
      ]);
      const holders = new Map((old?.holders ?? []).map(({ connectionId, state }) => [connectionId, state]));
      return { stale, holders };
    }),
  );
  return { both, tookMs: performance.now() - begun };
}

it('streams move between them: no stale pin counts twice, none is lost, and the curves of both are the whole', async () => {
  const dns = cleanup.use(await DnsServer.start());
  const replicas = await startReplicas(dns);
  const [first, second] = replicas;
  const move = await setUpMove(
    cleanup,
    { dns, sidelight: first },
    {
      name: cluster,
      kind: 'LOGICAL_DNS',
      reporter: { replicas: [second.grpcPort], concurrency: 2, logFlushMs },
    },
  );
  const { upstreams, envoy } = move;
  const arrivedMs: number[] = [];
  upstreams.handle(() => {
    arrivedMs.push(Date.now());
    return { kind: 'respond', status: 200 };
  });
  const { client, failures, stop } = keepSending(cleanup, envoy, { concurrency: 4 });
  const sumOf = async (metric: string, labels = {}) => {
    const each = await Promise.all(replicas.map((replica) => replica.metric(metric, { cluster, ...labels })));
    return each.reduce((sum, value) => sum + value, 0);
  };
  await until('both to know the old list', async () => (await sumOf('sidelight_endpoint_listed')) === 2);
  move.answer(newIp);
  const held = upstreams.openConnections(oldIp);
  const staleIds = async () => {
    const each = await Promise.all(replicas.map((replica) => pinsOf(replica, cluster)));
    const stale = each.flatMap(({ pins }) => pins.filter(({ pin }) => pin === 'stale'));
    return new Set(stale.map(({ connectionId }) => connectionId));
  };
  let ids = new Set<string>();
  await until('all to be stale', async () => {
    ids = await staleIds();
    return ids.size === held;
  });

  const endpoint = `${oldIp}:${upstreams.port}`;
  const moments = [];
  const until8s = performance.now() + 8000;
  while (performance.now() < until8s) {
    const moment = await ask(replicas, endpoint);
    // A round that took longer than Envoy keeps entries back may see a stream on both sides of its move.
    if (moment.tookMs < logFlushMs) moments.push(moment.both);
    await sleep(50);
  }
  expect(upstreams.openConnections(oldIp)).toBe(held);
  expect(moments.length).toBeGreaterThan(20);
  const sums = moments.map((both) => both.reduce((sum, { stale }) => sum + stale, 0));
  expect(Math.max(...sums)).toBe(held);
  for (const both of moments)
    for (const id of ids) expect(both.filter(({ holders }) => holders.has(id))).not.toEqual([]);
  // They did move: each replica had some of them in use, and had not.
  const isInUse = (state: HolderState | undefined) => state === 'open' || state === 'idle';
  for (const i of [0, 1]) {
    const inUse = moments.map((both) => [...ids].filter((id) => isInUse(both[i]?.holders.get(id))).length);
    expect(Math.max(...inUse)).toBeGreaterThan(0);
    expect(Math.min(...inUse)).toBeLessThan(held);
  }

  // That a stream moved is no drain.
  for (const replica of replicas) expect(eventsOf(replica, 'endpoint.cleared', cluster)).toEqual([]);

  await stop();
  // A busy machine hears so late of a stream's end that Envoy may have sent a beat into it.
  const received = 0.95;
  const sent = client.log.length;
  await until('the last requests', async () => (await sumOf('sidelight_requests_total')) >= received * sent);
  await sleep(2 * logFlushMs);
  expect(failures()).toBe(0);
  expect(await sumOf('sidelight_requests_total', { outcome: 'ok' })).toBeLessThanOrEqual(sent);
  const drains = await Promise.all(replicas.map((replica) => endpointOf(replica, cluster, endpoint)));
  const leftMs = drains.map((drain) => drain?.leftAtMs ?? Number.NaN);
  const total = drains.reduce((sum, drain) => sum + (drain?.drain?.requests ?? 0), 0);
  // Each saw the flip in a round of its own; and what is told of a moment is as good as the clocks are compared.
  const slackMs = 250;
  const since = (ms: number) => arrivedMs.filter((at) => at > ms).length;
  expect(total).toBeGreaterThanOrEqual(received * since(Math.max(...leftMs) + slackMs));
  expect(total).toBeLessThanOrEqual(since(Math.min(...leftMs) - slackMs));
  expect(total).toBeGreaterThan(100);
});

it('a TCP connection whose stream moves between them: no byte counts twice', async () => {
  const dns = cleanup.use(await DnsServer.start());
  const replicas = await startReplicas(dns);
  const [first, second] = replicas;
  const answer = (ip: string) => dns.set(`${cluster}.test`, { kind: 'addresses', addresses: [ip], ttlSeconds: 1 });
  answer(oldIp);
  const old = cleanup.use(await startTcpEcho(oldIp));
  const envoy = await startReporter(cleanup, cluster, {
    sidelightPort: first.grpcPort,
    replicas: [second.grpcPort],
    clusters: [
      dnsCluster({ name: cluster, kind: 'STRICT_DNS', host: `${cluster}.test`, port: old.port, dnsPort: dns.port }),
    ],
    tcpProxy: { cluster },
    tcpLogFlushMs: periodMs,
    logFlushMs,
  });
  await envoy.admin.waitForStat(`cluster.${cluster}.membership_healthy`, (hosts) => hosts === 1);
  const client = cleanup.use(await tcpClient(envoy.port('tcp')));
  const ending = new AbortController();
  const talk = async () => {
    while (!ending.signal.aborted) {
      await client.exchange('hello');
      await sleep(20);
    }
  };
  const done = talk();
  const stop = () => {
    ending.abort();
    return done;
  };
  cleanup.defer(stop);
  const of = (replica: TestSidelight) => endpointOf(replica, cluster, `${oldIp}:${old.port}`);
  const bothSay = async (state: string) =>
    (await Promise.all(replicas.map(of))).every((endpoint) => endpoint?.state === state);
  await until('both to know the old list', () => bothSay('listed'));
  // What the first entry after it left tells of may have flowed up to a beat and a period before.
  const bytesBefore = old.bytes();
  await sleep(logFlushMs + periodMs);
  answer(newIp);
  await until('both to see it leave', () => bothSay('left'));
  await sleep(8000);
  await stop();
  const echoed = 2 * (old.bytes() - bytesBefore);
  await client.close();
  await until('its end', async () => {
    const ends = await Promise.all(
      replicas.map((replica) => replica.metric('sidelight_tcp_connections_total', { cluster })),
    );
    return ends.includes(1);
  });
  const each = (await Promise.all(replicas.map(of))).map((endpoint) => endpoint?.drain?.bytes ?? 0);
  expect(Math.min(...each)).toBeGreaterThan(0);
  const sum = each.reduce((all, bytes) => all + bytes, 0);
  expect(sum).toBeLessThanOrEqual(echoed);
  // Of each stream what flowed before its first entry is nobody's; of these that live for a second that is much.
  expect(sum).toBeGreaterThan(echoed / 3);
});
