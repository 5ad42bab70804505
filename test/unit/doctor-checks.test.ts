import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Cleanup } from '../../src/lab/cleanup.ts';
import {
  type Bootstrap,
  type HttpFilter,
  type Json,
  type ShippedConfig,
  shippedConfig,
} from '../../src/lab/envoy-config.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { doctorReport, runDoctor } from '../support/run-doctor.ts';

/* What needs no Envoy of its own to be seen: a bootstrap as YAML, or a config dump beside it. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

interface Found {
  id: string;
  where: string[];
  evidence: string;
}

async function lookAtYaml(config: Bootstrap): Promise<Found[]> {
  const { out } = await runDoctor(['-'], { json: true }, stringify(config));
  return (JSON.parse(out) as { findings: Found[] }).findings;
}

const hcmOf = (config: Bootstrap) => {
  const found = config.static_resources.listeners[0]?.filter_chains[0]?.filters[0]?.typed_config;
  if (found === undefined) throw new Error('no listener');
  return found;
};
const lua: HttpFilter = {
  name: 'envoy.filters.http.lua',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua' },
};

/** A shipped config as `/config_dump` has it, without a version. */
function dumpOf(name: ShippedConfig): string {
  const { listeners, clusters } = shippedConfig(name).static_resources;
  const configs = [
    { '@type': 'a.ListenersConfigDump', static_listeners: listeners.map((listener) => ({ listener })) },
    { '@type': 'a.ClustersConfigDump', static_clusters: clusters.map((cluster) => ({ cluster })) },
  ];
  return JSON.stringify({ configs });
}

describe('a bootstrap as YAML', () => {
  it.each(['full', 'observe', 'tag'] as const)('that is shipped, %s: nothing is found', async (name) => {
    expect(await lookAtYaml(shippedConfig(name))).toEqual([]);
  });

  it("calls by an Istio cluster's name are refused unless they name an authority, the health check's too", async () => {
    const name = 'outbound|50051||sidelight.sidelight.svc.cluster.local';
    const named = JSON.stringify(shippedConfig('full')).replaceAll(/name":"sidelight"/g, `name":"${name}"`);
    const found = await lookAtYaml(JSON.parse(named) as Bootstrap);
    expect(found.map(({ id }) => id)).toEqual(['authority-refused', 'authority-refused']);
    expect(found.flatMap(({ where }) => where)).toEqual(['listener http, filter chain 0', `cluster ${name}`]);
    const authority = '"authority":"sidelight.sidelight"';
    const told = named
      .replaceAll('"envoy_grpc":{', `"envoy_grpc":{${authority},`)
      .replace('"grpc_health_check":{', `"grpc_health_check":{${authority}`);
    expect(await lookAtYaml(JSON.parse(told) as Bootstrap)).toEqual([]);
  });

  it('filters of the user before ours are as they should be, those after are told', async () => {
    const before = shippedConfig('full');
    hcmOf(before).http_filters?.unshift(lua);
    expect(await lookAtYaml(before)).toEqual([]);
    const after = shippedConfig('full');
    hcmOf(after).http_filters?.splice(-1, 0, lua);
    const [finding] = await lookAtYaml(after);
    expect(finding).toMatchObject({ id: 'filter-after-ours', where: ['listener http, filter chain 0'] });
    expect(finding?.evidence).toBe('after envoy.filters.http.ext_proc.sidelight: envoy.filters.http.lua');
    const other = shippedConfig('full');
    const type = 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor';
    hcmOf(other).http_filters?.splice(-1, 0, { name: 'mine', typed_config: { '@type': type } });
    expect((await lookAtYaml(other))[0]?.evidence).toBe('after envoy.filters.http.ext_proc.sidelight: mine');
  });

  it('a bootstrap with an alias in each of many listeners is read', async () => {
    const config = shippedConfig('full');
    const [http] = config.static_resources.listeners;
    if (http === undefined) throw new Error('expected a listener');
    config.static_resources.listeners = Array.from({ length: 150 }, () => http);
    const { code, out } = await runDoctor(['-'], {}, stringify(config));
    expect(out).toContain('150 of 150 filter chains attached');
    expect(code).toBe(0);
  });

  it('TCP that is not logged beside HTTP that is', async () => {
    const config = shippedConfig('observe');
    const tcp = config.static_resources.listeners[1]?.filter_chains[0]?.filters[0]?.typed_config;
    delete tcp?.access_log;
    const findings = await lookAtYaml(config);
    expect(findings.map(({ id, where }) => [id, ...where])).toEqual([
      ['tcp-not-logged', 'listener tcp, filter chain 0'],
    ]);
  });

  it('TCP of the other direction, or into a tunnel, is no gap', async () => {
    const config = shippedConfig('observe');
    const [http, tcp] = config.static_resources.listeners;
    Object.assign(http ?? {}, { traffic_direction: 'OUTBOUND' });
    Object.assign(tcp ?? {}, { traffic_direction: 'INBOUND' });
    delete tcp?.filter_chains[0]?.filters[0]?.typed_config.access_log;
    expect(await lookAtYaml(config)).toEqual([]);
    Object.assign(tcp ?? {}, { traffic_direction: 'OUTBOUND' });
    expect((await lookAtYaml(config)).map(({ id }) => id)).toEqual(['tcp-not-logged']);
    Object.assign(tcp ?? {}, { name: 'connect_originate' });
    expect(await lookAtYaml(config)).toEqual([]);
  });

  it('the tunnel of a waypoint is attached', async () => {
    const config = shippedConfig('observe');
    config.static_resources.listeners.splice(1);
    for (const listener of config.static_resources.listeners) listener.name = 'connect_terminate';
    expect((await lookAtYaml(config)).map(({ id }) => id)).toEqual(['attached-to-tunnel']);
  });

  it('what a control plane adds is not missed', async () => {
    const config = shippedConfig('observe');
    config.static_resources.clusters = [];
    expect((await lookAtYaml(config)).map(({ id }) => id)).toEqual(['cluster-missing']);
    config['dynamic_resources'] = { cds_config: {} };
    expect(await lookAtYaml(config)).toEqual([]);
    config.static_resources.listeners = [];
    expect(await lookAtYaml(config)).toEqual([]);
  });

  it('the sidecar of Sidelight itself, by its own address and port', async () => {
    const config = shippedConfig('observe');
    config['node'] = { id: 'sidecar~127.0.0.1~sidelight-a.sidelight~sidelight.svc.cluster.local' };
    const route = hcmOf(config).route_config?.virtual_hosts[0]?.routes[0]?.['route'] as Json;
    route['cluster'] = 'inbound|50051||';
    expect((await lookAtYaml(config)).map(({ id }) => id)).toEqual(['calls-itself']);
    route['cluster'] = 'inbound|8080||';
    expect(await lookAtYaml(config)).toEqual([]);
  });
});

describe('versions', () => {
  const ids = async (name: 'tag' | 'observe', version: string) => {
    const folder = cleanup.use(tempDir()).path;
    writeFileSync(path.join(folder, 'dump'), dumpOf(name));
    writeFileSync(path.join(folder, 'info'), JSON.stringify({ version }));
    const report = await doctorReport([], {
      configDump: [path.join(folder, 'dump')],
      serverInfo: [path.join(folder, 'info')],
    });
    return report.findings.map(({ id }) => id);
  };

  it.each([
    ['observe', '0/1.36.4/Clean/RELEASE/BoringSSL', ['envoy-too-old']],
    ['observe', '0/1.37.0/Clean/RELEASE/BoringSSL', []],
    ['tag', '0/1.36.4/Clean/RELEASE/BoringSSL', []],
    ['tag', '0/1.35.9-dev/Clean/RELEASE/BoringSSL', ['envoy-too-old']],
    ['observe', '0/2.0.0/Clean/RELEASE/BoringSSL', []],
  ] as const)('%s on %s', async (name, version, expected) => {
    expect(await ids(name, version)).toEqual(expected);
  });
});

describe('statistics', () => {
  const withStats = async (stats: string) => {
    const folder = cleanup.use(tempDir()).path;
    writeFileSync(path.join(folder, 'stats'), stats);
    writeFileSync(path.join(folder, 'dump'), dumpOf('full'));
    return doctorReport([], { configDump: [path.join(folder, 'dump')], stats: [path.join(folder, 'stats')] });
  };

  it('of ext_proc that are not collected are told', async () => {
    const report = await withStats('server.live: 1\nserver.x: 0\ncluster.app.upstream_rq_total: 0\n');
    expect(report.findings.map(({ id }) => id)).toEqual(['ext-proc-stats-absent']);
  });

  it('without what never moved say nothing of what is not there', async () => {
    const report = await withStats('server.live: 1\nserver.x: 4\ncluster.app.upstream_rq_total: 3\n');
    expect(report.findings).toEqual([]);
    expect(report.notLooked.map(({ what }) => what)).toContain('which statistics are not collected');
  });
});

describe('--host', () => {
  // A ServiceEntry whose name resolves to a ClusterIP, for which there is a listener of its own.
  const socket = (address: string, port: number) => ({ socket_address: { address, port_value: port } });
  const tcpListener = {
    name: '10.2.0.10_443',
    address: socket('10.2.0.10', 443),
    filter_chains: [
      { filters: [{ name: 'tcp', typed_config: { '@type': 'a.TcpProxy', cluster: 'outbound|443||pay.shop' } }] },
    ],
  };
  const clusterTo = (name: string, address: string) => ({
    name,
    load_assignment: { endpoints: [{ lb_endpoints: [{ endpoint: { address: socket(address, 443) } }] }] },
  });
  const look = (stats: string) => {
    const config = shippedConfig('observe');
    const { listeners, clusters } = config.static_resources;
    listeners.push(tcpListener);
    clusters.push(
      clusterTo('outbound|443||pay.example.com', '10.2.0.10'),
      clusterTo('outbound|443||pay.shop', '10.0.0.7'),
    );
    const endpoints = {
      '@type': 'a.EndpointsConfigDump',
      static_endpoint_configs: [
        {
          endpoint_config: {
            cluster_name: 'outbound|443||pay.example.com',
            ...clusterTo('', '10.2.0.10').load_assignment,
          },
        },
      ],
    };
    const folder = cleanup.use(tempDir()).path;
    const dump = JSON.parse(dumpOf('observe')) as { configs: Json[] };
    Object.assign(dump.configs[0] ?? {}, { static_listeners: listeners.map((listener) => ({ listener })) });
    Object.assign(dump.configs[1] ?? {}, { static_clusters: clusters.map((cluster) => ({ cluster })) });
    writeFileSync(path.join(folder, 'dump'), JSON.stringify({ configs: [...dump.configs, endpoints] }));
    writeFileSync(path.join(folder, 'stats'), stats);
    const files = { configDump: [path.join(folder, 'dump')], stats: [path.join(folder, 'stats')] };
    return doctorReport([], { ...files, host: 'pay.example.com' });
  };
  const stat = (cluster: string, count: number) => `cluster.outbound|443||${cluster}.upstream_cx_total: ${count}\n`;

  it('a listener for the address that the name resolves to has the traffic', async () => {
    const { findings } = await look(stat('pay.example.com', 0) + stat('pay.shop', 7));
    const found = findings.find(({ id }) => id === 'traffic-elsewhere');
    expect(found?.evidence).toBe(
      'outbound|443||pay.example.com has 0 requests; outbound|443||pay.shop (its listener has that address) has 0 requests, 7 connections, by listener 10.2.0.10_443, filter chain 0',
    );
  });

  it('what has traffic itself, or what nothing tells of, is no finding', async () => {
    for (const stats of [stat('pay.example.com', 1) + stat('pay.shop', 7), stat('pay.shop', 7)]) {
      expect((await look(stats)).findings.map(({ id }) => id)).not.toContain('traffic-elsewhere');
    }
  });
});
