import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.ts';
import { startBlackhole } from '../../src/lab/blackhole.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { dnsCluster, staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import type { Cluster } from '../../src/lab/envoy-config.ts';
import type { EnvoyProcess } from '../../src/lab/envoy-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tcpClient } from '../../src/lab/tcp-client.ts';
import { startTcpEcho } from '../../src/lab/tcp-echo.ts';
import { asksFor, bothKindsOfDns, newIp, oldIp } from '../support/moving-name.ts';
import { endpointOf, eventsOf, pinsOf, type ReporterOptions, startReporter } from '../support/reporting.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { keepTalking } from '../support/talking.ts';
import { until } from '../support/until.ts';

/* TCP passthrough on a real Envoy: nothing can retry here, and a connection stays where it is. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const startService = async (config: ConfigInput) => cleanup.use(await startTestSidelight(config));

async function startTcpEnvoy(
  sidelight: TestSidelight,
  name: string,
  cluster: Cluster,
  more: Partial<ReporterOptions> = {},
): Promise<EnvoyProcess> {
  const options = { sidelightPort: sidelight.grpcPort, clusters: [cluster], tcpLogFlushMs: 200, ...more };
  return startReporter(cleanup, name, options);
}

const kinds = ['STRICT_DNS', 'LOGICAL_DNS'] as const;

it.each(bothKindsOfDns)(
  "A4 the name moves, Envoy's %s DNS: stale while the bytes flow, until the connection ends",
  async (_kind, runtime) => {
    const dns = cleanup.use(await DnsServer.start());
    const answer = (address: string) =>
      dns.set('tcp-app.test', { kind: 'addresses', addresses: [address], ttlSeconds: 1 });
    answer(oldIp);
    const adminPorts = [await freePort(), await freePort()];
    const { discovery, ...config } = asksFor(['tcp-app'], dns, 500);
    const envoyAdmin = { urls: adminPorts.map((port) => `http://127.0.0.1:${port}`), refreshMs: 500, timeoutMs: 450 };
    const sidelight = await startService({ ...config, discovery: { ...discovery, envoyAdmin } });
    const old = cleanup.use(await startTcpEcho(oldIp));
    const next = cleanup.use(await startTcpEcho(newIp, old.port));
    const endpoint = `${oldIp}:${old.port}`;
    const common = { name: 'tcp-app', host: 'tcp-app.test', port: old.port, dnsPort: dns.port };
    const envoys = await Promise.all(
      kinds.map((kind, i) =>
        startTcpEnvoy(sidelight, kind, dnsCluster({ ...common, kind }), {
          runtime,
          adminPort: adminPorts[i] ?? 0,
        }),
      ),
    );
    await Promise.all(envoys.map((envoy) => keepTalking(cleanup, envoy)));
    const pins = (pin: string, kind: string) =>
      sidelight.metric('sidelight_pins', { pin, layer: 'tcp', cluster: 'tcp-app', reporter_workload: kind });
    const bothAre = async (pin: string) =>
      (await pins(pin, 'STRICT_DNS')) === 1 && (await pins(pin, 'LOGICAL_DNS')) === 1;
    await until('current connections', () => bothAre('current'));
    answer(newIp);
    await until('stale connections', () => bothAre('stale'));
    await until('the contradiction', async () =>
      (await pinsOf(sidelight, 'tcp-app')).pins.every(({ contradiction }) => contradiction === 'proxy_not_listing'),
    );
    const { pins: rows } = await pinsOf(sidelight, 'tcp-app');
    expect(rows.map((row) => [row.pin, row.layer, row.endpoint, row.advice?.reason])).toEqual(
      kinds.map(() => ['stale', 'tcp', endpoint, 'tcp_session']),
    );
    const leftAtMs = rows[0]?.leftAtMs ?? Number.NaN;
    for (const envoy of envoys)
      expect(await envoy.admin.hosts('tcp-app')).toMatchObject([{ address: `${newIp}:${next.port}` }]);

    const bytes = () => sidelight.metric('sidelight_pin_bytes_total', { cluster: 'tcp-app', endpoint });
    const [bytesBefore, echoedBefore] = [await bytes(), old.bytes()];
    expect(bytesBefore).toBeGreaterThan(0);
    await sleep(2000);
    // Both ways, and told five times a second.
    const [grown, echoed] = [(await bytes()) - bytesBefore, 2 * (old.bytes() - echoedBefore)];
    expect(Math.abs(grown - echoed) / echoed).toBeLessThan(0.3);
    expect(next.bytes()).toBe(0);

    old.cycle();
    await until('the pins to clear', async () => (await pinsOf(sidelight, 'tcp-app')).cleared.length === 2);
    expect((await pinsOf(sidelight, 'tcp-app')).cleared.map(({ pin, how }) => [pin, how])).toEqual([
      ['stale', 'closed'],
      ['stale', 'closed'],
    ]);
    const { drain, connections } = (await endpointOf(sidelight, 'tcp-app', endpoint)) ?? {};
    expect(connections).toEqual({ open: 0, idle: 0, unseen: 0 });
    // What flowed until the end, second by second, each of the two by itself too.
    expect(drain?.bytes).toBe(await bytes());
    expect(drain?.requests).toBe(0);
    const whole = drain?.points.slice(1, -1) ?? [];
    expect(whole.length).toBeGreaterThan(1);
    for (const point of whole) expect([point.bytes > 0, point.connections]).toEqual([true, 2]);
    expect(drain?.reporters.map(({ reporter }) => reporter.workload).toSorted()).toEqual(kinds.toSorted());
    expect(eventsOf(sidelight, 'endpoint.cleared', 'tcp-app')).toMatchObject([
      { endpoint, leftAtMs, lastUsedMs: drain?.lastUsedMs, pins: 2, closed: 2 },
    ]);
    expect(
      (await sidelight.get('/metrics'))
        .split('\n')
        .filter((line) => /^sidelight_pin(?:s|_oldest_seconds)\{/.test(line) && line.includes(oldIp)),
    ).toEqual([]);
    const ended = { cluster: 'tcp-app', endpoint };
    expect(await sidelight.metric('sidelight_tcp_connections_total', ended)).toBe(2);
  },
);

/** Connects so many times, one after the other; true where bytes came back. */
async function connect(envoy: EnvoyProcess, times: number): Promise<boolean[]> {
  const answered: boolean[] = [];
  for (let i = 0; i < times; i += 1) {
    const client = await tcpClient(envoy.port('tcp'));
    answered.push(
      await client.exchange('hello').then(
        () => true,
        () => false,
      ),
    );
    await client.close();
  }
  return answered;
}

async function setUpDead(name: string, extra = {}) {
  const sidelight = await startService({});
  const dead = cleanup.use(await startBlackhole('127.0.0.13'));
  const good = cleanup.use(await startTcpEcho('127.0.0.12'));
  const refusing = `127.0.0.14:${await freePort(['127.0.0.14'])}`;
  const [silent, answering] = [`${dead.ip}:${dead.port}`, `${good.ip}:${good.port}`];
  const cluster = staticCluster([silent, refusing, answering], { name: 'tcp-app', extra });
  const envoy = await startTcpEnvoy(sidelight, name, cluster);
  const ended = (labels: Record<string, string> = {}) => sidelight.metric('sidelight_tcp_connections_total', labels);
  return { envoy, ended, silent, refusing, answering };
}

it('B3 dead addresses: failures by cause and endpoint, each as the client counted; nothing is masked', async () => {
  const { envoy, ended, silent, refusing, answering } = await setUpDead('b3');
  const answered = await connect(envoy, 21);
  await until('every connection', async () => (await ended()) === 21);
  const good = answered.filter(Boolean).length;
  expect([good, answered.length - good]).toEqual([7, 14]);
  expect(await ended({ endpoint: silent, result: 'failed', cause: 'connect_timeout' })).toBe(7);
  expect(await ended({ endpoint: refusing, result: 'failed', cause: 'connect_failure' })).toBe(7);
  expect(await ended({ endpoint: answering, result: 'ok' })).toBe(7);
  expect(await envoy.admin.stat('cluster.tcp-app.upstream_cx_connect_fail')).toBe(14);
});

it('B4 with outlier detection their share falls to 0', async () => {
  const { envoy, ended, answering } = await setUpDead('b4', {
    outlier_detection: { consecutive_5xx: 2, base_ejection_time: '60s', max_ejection_percent: 100 },
    // By default Envoy sends to all again when half of them are out, and is told of it a second later.
    common_lb_config: { healthy_panic_threshold: { value: 0 }, update_merge_window: '0s' },
  });
  const before: boolean[] = [];
  await until('both to be out', async () => {
    before.push(...(await connect(envoy, 3)));
    return (await envoy.admin.stat('cluster.tcp-app.outlier_detection.ejections_active')) === 2;
  });
  const after = await connect(envoy, 10);
  await until('every connection', async () => (await ended()) === before.length + after.length);
  expect(after).toEqual(Array.from({ length: 10 }, () => true));
  expect(await ended({ result: 'failed' })).toBe(before.filter((ok) => !ok).length);
  expect(await ended({ endpoint: answering, result: 'ok' })).toBe([...before, ...after].filter(Boolean).length);
});
