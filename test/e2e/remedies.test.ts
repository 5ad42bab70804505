import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { commonHttpOptions, dnsCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { type TcpClient, tcpClient } from '../../src/lab/tcp-client.ts';
import { startTcpEcho } from '../../src/lab/tcp-echo.ts';
import { asksFor, type Move, type MoveOptions, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { cleaned, pinsOf, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/*
 * What ends a pin, and what does not, on a real Envoy: a name moves from one address to another while a client keeps
 * sending. Each change stands beside the same without it. Waits that are minutes in production are seconds here.
 */
const pools = ['plain', 'strict', 'flag', 'duration', 'set-change', 'idle', 'set-change-idle'];
const longRequests = ['long', 'long-route', 'long-cluster'];
const heldHosts = ['held', 'unheld'];
const sessions = ['tcp-plain', 'tcp-duration', 'tcp-server', 'tcp-set-change', 'tcp-health'];
/** Longer than Envoy takes to see the move (it asks once a second), and than a connection of these tests may live. */
const longEnoughMs = 4000;
const closesOnSetChange = { common_lb_config: { close_connections_on_host_set_change: true } };
const tcpHealthCheck = {
  tcp_health_check: {},
  interval: '0.2s',
  no_traffic_interval: '0.2s',
  timeout: '0.5s',
  unhealthy_threshold: 2,
  healthy_threshold: 1,
};

const everything = new Cleanup();
let dns: DnsServer;
let sidelight: TestSidelight;

beforeAll(async () => {
  dns = everything.use(await DnsServer.start());
  sidelight = everything.use(
    await startTestSidelight(asksFor([...pools, ...longRequests, ...heldHosts, ...sessions], dns, 500)),
  );
});
afterAll(() => everything.run());

const playing = (options: MoveOptions, play: (move: Move, cleanup: Cleanup) => Promise<void>) =>
  cleaned(async (cleanup) => play(await setUpMove(cleanup, { dns, sidelight }, options), cleanup));

/** The old address has no connection any more, the new one all requests, and Sidelight nothing to tell. */
async function ended(move: Move, name: string): Promise<void> {
  await until('no connection to the old address', () => move.upstreams.openConnections(oldIp) === 0);
  await until('requests on the new one', () => move.upstreams.requests(newIp) > 0);
  const sentToOld = move.upstreams.requests(oldIp);
  await until('no pin', async () => (await pinsOf(sidelight, name)).pins.every(({ pin }) => pin === 'current'));
  expect(move.upstreams.requests(oldIp)).toBe(sentToOld);
}

async function follows(move: Move): Promise<void> {
  move.answer(newIp);
  await until('Envoy’s own list to follow', async () => (await move.listedByEnvoy()).join() === newIp);
}

describe.concurrent('a pool of LOGICAL_DNS, as Envoy up to 1.38 keeps it', () => {
  const kind = 'LOGICAL_DNS';

  it(
    'stays',
    playing({ name: 'plain', kind }, async (move) => {
      const { stop, failures } = await move.traffic();
      await follows(move);
      await until('a stale pin', async () => (await move.connections('stale')) > 0);
      const sentToOld = move.upstreams.requests(oldIp);
      await sleep(longEnoughMs);
      await stop();
      expect(move.upstreams.requests(oldIp)).toBeGreaterThan(sentToOld);
      expect(move.upstreams.requests(newIp)).toBe(0);
      expect(failures()).toBe(0);
    }),
  );

  it(
    'ends with STRICT_DNS',
    playing({ name: 'strict', kind: 'STRICT_DNS' }, async (move) => {
      const { failures } = await move.traffic();
      await follows(move);
      await ended(move, 'strict');
      expect(failures()).toBe(0);
    }),
  );

  it(
    'ends with the runtime flag',
    playing(
      { name: 'flag', kind, runtime: { 'envoy.reloadable_features.enable_new_dns_implementation': true } },
      async (move) => {
        const { failures } = await move.traffic();
        await follows(move);
        await ended(move, 'flag');
        expect(failures()).toBe(0);
      },
    ),
  );

  it(
    'ends with max_connection_duration, no request lost',
    playing({ name: 'duration', kind, extra: commonHttpOptions({ max_connection_duration: '2s' }) }, async (move) => {
      const { failures } = await move.traffic();
      await follows(move);
      await ended(move, 'duration');
      expect(failures()).toBe(0);
      expect(await move.envoy.admin.stat('cluster.duration.upstream_cx_max_duration_reached')).toBeGreaterThan(0);
    }),
  );

  it(
    'does not end with close_connections_on_host_set_change',
    playing({ name: 'set-change', kind, extra: closesOnSetChange }, async (move) => {
      const { stop } = await move.traffic();
      await follows(move);
      await until('a stale pin', async () => (await move.connections('stale')) > 0);
      const sentToOld = move.upstreams.requests(oldIp);
      await sleep(longEnoughMs);
      await stop();
      expect(move.upstreams.requests(oldIp)).toBeGreaterThan(sentToOld);
      expect(move.upstreams.requests(newIp)).toBe(0);
    }),
  );
});

/** Envoy closes the connections of the hosts that it lists after the change, and no longer those of the one that left. */
describe.concurrent('close_connections_on_host_set_change keeps connections that Envoy would have closed', () => {
  const idle = (name: string, extra: Json, then: (move: Move, open: number) => Promise<void>) =>
    playing({ name, extra }, async (move) => {
      const { stop } = await move.traffic();
      await stop();
      const open = move.upstreams.openConnections(oldIp);
      expect(open).toBeGreaterThan(0);
      await follows(move);
      await then(move, open);
    });

  it(
    'STRICT_DNS without it: idle connections to the old address are closed',
    idle('idle', {}, async (move) => {
      await until('their end', () => move.upstreams.openConnections(oldIp) === 0);
      expect(await move.envoy.admin.stat('cluster.idle.upstream_cx_active')).toBe(0);
    }),
  );

  it(
    'STRICT_DNS with it: they stay',
    idle('set-change-idle', closesOnSetChange, async (move, open) => {
      await sleep(longEnoughMs);
      expect(move.upstreams.openConnections(oldIp)).toBe(open);
      expect(await move.envoy.admin.stat('cluster.set-change-idle.upstream_cx_active')).toBe(open);
    }),
  );
});

describe.concurrent('a long request', () => {
  const long = (options: MoveOptions, then: (move: Move, isOver: () => boolean) => Promise<void>) =>
    playing({ ...options, action: { timeout: '0s', ...options.action } }, async (move, cleanup) => {
      const client = cleanup.use(http1Client(move.envoy.port('http')));
      let isOver = false;
      const request = client.request('/trickle/60000').finally(() => {
        isOver = true;
      });
      cleanup.defer(async () => {
        client.close();
        move.upstreams.cycle();
        await request;
      });
      await until('the request', () => move.upstreams.requests(oldIp) === 1);
      await follows(move);
      await then(move, () => isOver);
    });

  it(
    'stays',
    long({ name: 'long' }, async (move, isOver) => {
      await sleep(longEnoughMs);
      expect(isOver()).toBe(false);
      expect(move.upstreams.openConnections(oldIp)).toBe(1);
    }),
  );

  it(
    'ends with max_stream_duration of the route',
    long(
      { name: 'long-route', action: { max_stream_duration: { max_stream_duration: '3s' } } },
      async (move, isOver) => {
        await until('its end', isOver);
        await until('no connection to the old address', () => move.upstreams.openConnections(oldIp) === 0);
        expect(await move.envoy.admin.stat('http.http.downstream_rq_max_duration_reached')).toBe(1);
      },
    ),
  );

  it(
    'ends with max_stream_duration of the cluster',
    long({ name: 'long-cluster', extra: commonHttpOptions({ max_stream_duration: '3s' }) }, async (move, isOver) => {
      await until('its end', isOver);
      await until('no connection to the old address', () => move.upstreams.openConnections(oldIp) === 0);
      expect(await move.envoy.admin.stat('cluster.long-cluster.upstream_rq_max_duration_reached')).toBe(1);
    }),
  );
});

describe.concurrent('a host that left and passes its health check', () => {
  it(
    'stays in use',
    playing({ name: 'held', extra: { health_checks: [tcpHealthCheck] } }, async (move) => {
      const { stop } = await move.traffic();
      move.answer(newIp);
      await until('requests on the new address', () => move.upstreams.requests(newIp) > 0);
      await sleep(longEnoughMs);
      const sentToOld = move.upstreams.requests(oldIp);
      await until('more on the old one', () => move.upstreams.requests(oldIp) > sentToOld);
      await stop();
      expect(new Set(await move.listedByEnvoy())).toEqual(new Set([oldIp, newIp]));
    }),
  );

  it(
    'ends with ignore_health_on_host_removal',
    playing(
      { name: 'unheld', extra: { health_checks: [tcpHealthCheck], ignore_health_on_host_removal: true } },
      async (move) => {
        const { failures } = await move.traffic();
        await follows(move);
        await ended(move, 'unheld');
        expect(failures()).toBe(0);
      },
    ),
  );
});

interface Session {
  old: Awaited<ReturnType<typeof startTcpEcho>>;
  next: Awaited<ReturnType<typeof startTcpEcho>>;
  stat: (name: string) => Promise<number>;
}

/** A client that keeps one TCP connection, and opens another when it breaks, over a name that has moved. */
function session(name: string, options: { extra?: Json; tcpProxy?: Json }, then: (session: Session) => Promise<void>) {
  return cleaned(async (cleanup) => {
    const answer = (ip: string) => dns.set(`${name}.test`, { kind: 'addresses', addresses: [ip], ttlSeconds: 1 });
    answer(oldIp);
    const port = await freePort([oldIp, newIp]);
    const old = cleanup.use(await startTcpEcho(oldIp, port));
    const next = cleanup.use(await startTcpEcho(newIp, port));
    const { extra = {}, tcpProxy = {} } = options;
    const envoy = await startReporter(cleanup, name, {
      sidelightPort: sidelight.grpcPort,
      clusters: [dnsCluster({ name, kind: 'STRICT_DNS', host: `${name}.test`, port, dnsPort: dns.port, extra })],
      tcpProxy: { cluster: name, ...tcpProxy },
      tcpLogFlushMs: 300,
    });
    await envoy.admin.waitForStat(`cluster.${name}.membership_healthy`, (hosts) => hosts === 1);
    keepTalking(cleanup, () => tcpClient(envoy.port('tcp')));
    await until('bytes on the old address', () => old.bytes() > 0);
    // Not any pin: Sidelight must have heard that the address is listed before it leaves.
    await until('a current pin', async () => {
      return (await sidelight.metric('sidelight_pins', { cluster: name, pin: 'current' })) > 0;
    });
    answer(newIp);
    await envoy.admin.waitForStat(`cluster.${name}.membership_change`, (changes) => changes === 2);
    await then({ old, next, stat: (stat) => envoy.admin.stat(stat) });
  });
}

function keepTalking(cleanup: Cleanup, connect: () => Promise<TcpClient>): void {
  const ending = new AbortController();
  const talk = async () => {
    while (!ending.signal.aborted) {
      const client = await connect();
      while (!ending.signal.aborted && !client.closed()) {
        await client.exchange('hello').catch(() => undefined);
        await sleep(50);
      }
      await client.close();
    }
  };
  const done = talk();
  cleanup.defer(async () => {
    ending.abort();
    await done;
  });
}

/** Where bytes flow, once Sidelight has found that it is the old address. */
async function whereWhenStale({ old, next }: Session, name: string) {
  await until('a stale pin', async () => (await pinsOf(sidelight, name)).pins[0]?.pin === 'stale');
  const bytes = old.bytes();
  await sleep(longEnoughMs);
  return { toOld: old.bytes() > bytes, toNew: next.bytes() > 0 };
}

/** Connections to the old address, once bytes flow to the new one and Sidelight has nothing to tell. */
async function leftWhenCurrent({ old, next }: Session, name: string): Promise<number> {
  await until('bytes on the new address', () => next.bytes() > 0);
  await until('no pin', async () => (await pinsOf(sidelight, name)).pins.every(({ pin }) => pin === 'current'));
  return old.openConnections();
}

describe.concurrent('a TCP connection that its client keeps', () => {
  it(
    'stays',
    session('tcp-plain', {}, async (moved) => {
      expect(await whereWhenStale(moved, 'tcp-plain')).toEqual({ toOld: true, toNew: false });
    }),
  );

  it(
    'ends with max_downstream_connection_duration',
    session('tcp-duration', { tcpProxy: { max_downstream_connection_duration: '3s' } }, async (moved) => {
      expect(await leftWhenCurrent(moved, 'tcp-duration')).toBe(0);
      expect(await moved.stat('tcp.tcp.max_downstream_connection_duration')).toBeGreaterThan(0);
    }),
  );

  it(
    'ends when its server closes it',
    session('tcp-server', {}, async (moved) => {
      moved.old.cycle();
      expect(await leftWhenCurrent(moved, 'tcp-server')).toBe(0);
    }),
  );

  it(
    'does not end with close_connections_on_host_set_change',
    session('tcp-set-change', { extra: closesOnSetChange }, async (moved) => {
      expect(await whereWhenStale(moved, 'tcp-set-change')).toEqual({ toOld: true, toNew: false });
    }),
  );

  it(
    'ends with close_connections_on_host_health_failure, once the old server takes no connection any more',
    session(
      'tcp-health',
      { extra: { health_checks: [tcpHealthCheck], close_connections_on_host_health_failure: true } },
      async (moved) => {
        await sleep(longEnoughMs);
        expect(moved.next.bytes()).toBe(0);
        moved.old.refuse();
        expect(await leftWhenCurrent(moved, 'tcp-health')).toBe(0);
      },
    ),
  );
});
