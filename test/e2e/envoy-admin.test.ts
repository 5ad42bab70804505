import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import { mayHoldConnection } from '../../src/judge/contradiction.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { dnsCluster, staticCluster } from '../../src/lab/clusters.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { assignment, type Cluster, type Json, labConfig } from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import { discovering } from '../support/discovery.ts';
import { FakeAdmin } from '../support/fake-admin.ts';
import { openGate } from '../support/gate.ts';
import { newIp, oldIp } from '../support/moving-name.ts';
import { keepSending, oldDns, pinsOf, routeTo } from '../support/reporting.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* What a real Envoy itself lists, by its admin interface. ENVOY_BIN chooses another one: 1.37 and 1.38 pass too. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const node = 'asked';
const odd = 'outbound|80||eds.example.com';
const http = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

/** A health check that a listening server passes: a host that it knows is kept when its source drops it. */
const healthChecked = {
  health_checks: [
    { timeout: '1s', interval: '0.5s', unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {} },
  ],
};

async function setUp() {
  const dns = cleanup.use(await DnsServer.start());
  const answer = (...addresses: string[]) => dns.set('app.test', { kind: 'addresses', addresses, ttlSeconds: 1 });
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp, newIp] }));
  const named = { host: 'app.test', port: upstreams.port, dnsPort: dns.port };
  const eds = edsFile(odd, upstreams.port);
  answer(oldIp);
  eds.write(oldIp);
  const clusters = [
    dnsCluster({ name: 'strict', kind: 'STRICT_DNS', ...named, extra: strictExtra }),
    dnsCluster({ name: 'checked', kind: 'STRICT_DNS', ...named, extra: healthChecked }),
    dnsCluster({
      name: 'logical',
      kind: 'LOGICAL_DNS',
      ...named,
      extra: { common_http_protocol_options: { idle_timeout: '9s' } },
    }),
    newDnsCluster('new.strict', named, false),
    newDnsCluster('new.logical', named, true),
    staticCluster(upstreams.addresses, { name: 'fixed:80', extra: { alt_stat_name: 'http://fixed' } }),
    staticCluster(upstreams.addresses, { name: 'newXstrict' }),
    eds.cluster,
  ];
  const routes = clusters.map(({ name }, i) => ({ ...routeTo(name), match: { prefix: `/${i}/` } }));
  const config = labConfig({ base: 'observe', sidelightPort: 1, clusters, routes, runtime: oldDns });
  config['node'] = { id: node, cluster: node };
  const envoy = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  const send = async (name: string) => {
    const index = clusters.findIndex((cluster) => cluster.name === name);
    const answered = await fetch(`http://127.0.0.1:${envoy.port('http')}/${index}/`);
    await answered.text();
    return answered.status;
  };
  const envoyAdmin = {
    urls: [`http://127.0.0.1:${envoy.admin.port}`],
    refreshMs: 500,
    timeoutMs: 1000,
    staleAfterMs: 5000,
  };
  const { discovery, errors } = discovering(cleanup, { envoyAdmin });
  await discovery.start();
  const names = clusters.map(({ name }) => name);
  for (const name of names) discovery.watch(name, node);
  const proxy = (name: string) => discovery.snapshot().proxy(name, node);
  await until('an answer about every cluster', () =>
    names.every((name) => proxy(name)?.hosts.size !== 0 && proxy(name)?.activeConnections !== undefined),
  );
  const at = (ip: string): Endpoint => ({ text: `${ip}:${upstreams.port}`, kind: 'ip', ip, port: upstreams.port });
  return {
    move: (ip: string) => {
      answer(ip);
      eds.write(ip);
    },
    send,
    errors,
    proxy,
    /** What the proxy lists, in the place of the world. */
    view: (name: string) => discovery.snapshot().cluster(name, node),
    hosts: (name: string) => [...(proxy(name)?.hosts ?? [])].map(([address, host]) => [address.split(':')[0], host]),
    mayHold: (name: string, ip: string) => mayHoldConnection(proxy(name), at(ip), Date.now()),
  };
}

const strictExtra = {
  common_lb_config: { close_connections_on_host_set_change: true },
  ignore_health_on_host_removal: true,
  typed_extension_protocol_options: {
    [http]: {
      '@type': `type.googleapis.com/${http}`,
      explicit_http_config: { http_protocol_options: {} },
      common_http_protocol_options: { idle_timeout: '7.5s', max_connection_duration: '60s' },
    },
  },
};

/** As `Cluster.type` is written from Envoy 1.40 on. */
function newDnsCluster(name: string, named: { host: string; port: number; dnsPort: number }, inOne: boolean): Cluster {
  const { typed_dns_resolver_config: resolver, load_assignment } = dnsCluster({ name, kind: 'STRICT_DNS', ...named });
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster',
    dns_refresh_rate: '1s',
    respect_dns_ttl: true,
    dns_lookup_family: 'V4_ONLY',
    all_addresses_in_single_endpoint: inOne,
    typed_dns_resolver_config: resolver,
  };
  return {
    name,
    connect_timeout: '0.25s',
    cluster_type: { name: 'envoy.clusters.dns', typed_config },
    load_assignment,
  };
}

/** A cluster whose endpoints are in a file that Envoy watches. */
function edsFile(name: string, port: number) {
  const file = join(cleanup.use(tempDir()).path, 'eds.json');
  const type = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';
  const source = { path_config_source: { path: file }, resource_api_version: 'V3' };
  const cluster: Cluster = { name, type: 'EDS', connect_timeout: '0.25s', eds_cluster_config: { eds_config: source } };
  let version = 0;
  return {
    cluster,
    write(...ips: string[]) {
      version += 1;
      const resource: Json = {
        '@type': type,
        ...assignment(
          name,
          ips.map((ip) => `${ip}:${port}`),
        ),
      };
      writeFileSync(`${file}.new`, JSON.stringify({ version_info: String(version), resources: [resource] }));
      renameSync(`${file}.new`, file);
    },
  };
}

const listedAlone = (activeConnections: number) => ({ activeConnections, healthy: true, pendingRemoval: false });

it("every kind of cluster: what its config says, its hosts, and Envoy's counts, for exact names", async () => {
  const { proxy, errors } = await setUp();
  expect(proxy('strict')).toMatchObject({
    type: 'STRICT_DNS',
    idleTimeoutMs: 7500,
    maxConnectionDurationMs: 60_000,
    closesOnHostSetChange: true,
    ignoresHealthOnRemoval: true,
    newDnsImplementation: false,
    envoyVersion: findEnvoy().version,
    activeConnections: 0,
  });
  expect(proxy('logical')).toMatchObject({ type: 'LOGICAL_DNS', idleTimeoutMs: 9000, closesOnHostSetChange: false });
  expect(proxy('checked')).toMatchObject({
    type: 'STRICT_DNS',
    idleTimeoutMs: undefined,
    ignoresHealthOnRemoval: false,
  });
  expect(proxy('new.strict')?.type).toBe('STRICT_DNS');
  expect(proxy('new.logical')?.type).toBe('LOGICAL_DNS');
  expect(proxy('fixed:80')).toMatchObject({ type: 'STATIC', activeConnections: 0 });
  expect(proxy(odd)).toMatchObject({ type: 'EDS', activeConnections: 0 });
  expect(errors).toEqual([]);
});

it('a move: the old host leaves each list, a health-checked one is kept, and the counts prove what can be open', async () => {
  const { move, send, proxy, view, hosts, mayHold } = await setUp();
  for (const name of ['strict', 'checked', 'logical', odd]) expect(await send(name)).toBe(200);
  await until('the connections', () =>
    ['strict', 'checked', 'logical', odd].every((name) => proxy(name)?.activeConnections === 1),
  );
  expect(hosts('strict')).toEqual([[oldIp, listedAlone(1)]]);
  expect(['strict', 'logical'].map((name) => mayHold(name, oldIp))).toEqual([true, undefined]);
  expect(mayHold('strict', newIp)).toBe(false);
  expect(mayHold('fixed:80', oldIp)).toBe(false);
  move(newIp);
  const gone = ['strict', 'checked', 'logical', odd, 'new.strict', 'new.logical'];
  await until('the moves', () => gone.every((name) => view(name)?.left.size === 1));
  for (const name of gone) {
    expect([name, ...(view(name)?.listed.keys() ?? [])].join(' ')).toMatch(new RegExp(`^\\S+ ${newIp}:\\d+$`));
    expect(view(name)).toMatchObject({ source: 'envoy', changes: { added: 1, removed: 1 } });
  }
  // The old DNS code: the connection to the old address is counted as the new one's.
  await until('the rest', () => proxy('strict')?.activeConnections === 0);
  expect(hosts('logical')).toEqual([[newIp, listedAlone(1)]]);
  expect(hosts('checked')).toEqual([
    [newIp, listedAlone(0)],
    [oldIp, { activeConnections: 1, healthy: true, pendingRemoval: true }],
  ]);
  expect(['strict', 'logical', 'checked', odd].map((name) => mayHold(name, oldIp))).toEqual([
    false,
    undefined,
    true,
    false,
  ]);
});

it('no file and no DNS: the proxy itself is the source, and its list is contradicted by its bytes', async () => {
  const { sidelight, envoy, answer, upstreams } = await setUpAlone('alone', 'LOGICAL_DNS');
  const { failures, stop } = keepSending(cleanup, envoy);
  const connections = (pin: string) => sidelight.metric('sidelight_pins', { cluster: 'alone', pin });
  await until('current connections', async () => (await connections('current')) > 0);
  answer(newIp);
  // One connection may still be draining, or be newer than the proxy's last answer, when the other is stale.
  await until('stale connections against the list', async () => {
    const { pins } = await pinsOf(sidelight, 'alone');
    return pins.length > 0 && pins.every(({ pin, contradiction }) => pin === 'stale' && contradiction !== undefined);
  });
  const { pins } = await pinsOf(sidelight, 'alone');
  for (const pin of pins)
    expect(pin).toMatchObject({
      pin: 'stale',
      source: 'envoy',
      endpoint: `${oldIp}:${upstreams.port}`,
      contradiction: 'proxy_not_listing',
    });
  upstreams.cycle(oldIp);
  await until('current connections again', async () => (await connections('current')) > 0);
  await stop();
  expect(failures()).toBeLessThanOrEqual(2);
});

it("an interface that hangs and one that sends 50 MB: named in the log, and neither traffic nor another proxy's view suffers", async () => {
  const hanging = cleanup.use(await FakeAdmin.start());
  hanging.instead = () => undefined;
  const huge = cleanup.use(await FakeAdmin.start());
  huge.nodeId = 'huge';
  huge.instead = (_path, response) => {
    const piece = Buffer.alloc(1 << 20, 32);
    const send = (left: number): void =>
      void (left === 0 ? response.end() : response.write(piece, () => send(left - 1)));
    send(50);
  };
  const { sidelight, envoy } = await setUpAlone('beside', 'STRICT_DNS', [hanging.url, huge.url]);
  const { failures, stop } = keepSending(cleanup, envoy);
  const requests = (pin: string) => sidelight.metric('sidelight_pinned_requests_total', { cluster: 'beside', pin });
  await until('current requests', async () => (await requests('current')) > 200);
  await stop();
  expect(failures()).toBe(0);
  const told = sidelight.log
    .filter(({ event }) => event === 'discovery.failed')
    .map(({ fields }) => (fields['error'] as Error).message);
  expect(told).toContain(`${hanging.url}/server_info: no whole answer in 500 ms`);
  expect(told).toContain(`${huge.url}/server_info: expected at most 8388608 bytes`);
});

it('an interface that goes silent: what it said grows stale, and its pins are unknown, never current', async () => {
  const { sidelight, envoy, adminGate } = await setUpAlone('silenced', 'STRICT_DNS');
  const { stop } = keepSending(cleanup, envoy);
  const connections = (pin: string) => sidelight.metric('sidelight_pins', { cluster: 'silenced', pin });
  await until('current connections', async () => (await connections('current')) > 0);
  adminGate.close();
  await until('unknown connections', async () => (await connections('unknown')) > 0);
  await sleep(500);
  expect(await connections('current')).toBe(0);
  const { pins } = await pinsOf(sidelight, 'silenced');
  expect(pins[0]).toMatchObject({ pin: 'unknown', reason: 'source_stale', source: 'envoy' });
  await stop();
});

/** A service whose only source is the admin interface of an Envoy, which it reaches through a gate. */
async function setUpAlone(name: string, kind: 'STRICT_DNS' | 'LOGICAL_DNS', otherUrls: readonly string[] = []) {
  const dns = cleanup.use(await DnsServer.start());
  const answer = (ip: string) => dns.set('app.test', { kind: 'addresses', addresses: [ip], ttlSeconds: 1 });
  answer(oldIp);
  const upstreams = cleanup.use(await Upstreams.start({ ips: [oldIp, newIp] }));
  const adminGate = cleanup.use(await openGate());
  const sidelight = cleanup.use(
    await startTestSidelight({
      clusters: [{ match: name, graceMs: 500 }],
      discovery: {
        dns: { enabled: false },
        envoyAdmin: {
          urls: [adminGate.url, ...otherUrls],
          refreshMs: 500,
          timeoutMs: 500,
          staleAfterMs: 2000,
        },
      },
    }),
  );
  const cluster = dnsCluster({ name, kind, host: 'app.test', port: upstreams.port, dnsPort: dns.port });
  const config = labConfig({
    base: 'observe',
    sidelightPort: sidelight.grpcPort,
    clusters: [cluster],
    routes: [routeTo(name)],
    runtime: kind === 'LOGICAL_DNS' ? oldDns : {},
  });
  config['node'] = { id: name, cluster: name };
  const envoy: EnvoyProcess = cleanup.use(await startEnvoy({ bin: findEnvoy().path, config }));
  await envoy.admin.waitForStat('cluster.sidelight.membership_healthy', (healthy) => healthy === 1);
  adminGate.leadTo(envoy.admin.port);
  return { sidelight, envoy, answer, upstreams, adminGate };
}
