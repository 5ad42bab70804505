import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import type { Report } from '../../src/doctor/examine.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import {
  assignment,
  type Bootstrap,
  type FilterConfig,
  type HttpFilter,
  type Json,
  labConfig,
  type ShippedConfig,
} from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { doctorReport, worries } from '../support/run-doctor.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';

/* Set-ups that are broken by one change, each on a real Envoy with traffic. ENVOY_BIN chooses an older one. */
const bin = findEnvoy().path;
const shared = new Cleanup();
const cleanup = new Cleanup();
let sidelight: TestSidelight;
let upstreams: Upstreams;
let closedPort: number;

beforeAll(async () => {
  sidelight = shared.use(await startTestSidelight());
  upstreams = shared.use(await Upstreams.start({ ips: ['127.0.0.11'] }));
  closedPort = await freePort(['127.0.0.1']);
  // What is slow the first time is done before anything is counted.
  await startWith(configOf('full'));
  await cleanup.run();
});
afterAll(() => shared.run());
afterEach(() => cleanup.run());

/** The parts of a lab config that are changed. */
class Parts {
  readonly config: Bootstrap;
  constructor(config: Bootstrap) {
    this.config = config;
  }
  get hcm(): FilterConfig {
    return this.#filter(0);
  }
  get tcp(): FilterConfig {
    return this.#filter(1);
  }
  get filters(): HttpFilter[] {
    return this.hcm.http_filters ?? [];
  }
  /** `typed_config` of the HTTP filter whose name ends so. */
  filter(end: string): Json {
    const found = this.filters.find(({ name }) => name.endsWith(end));
    if (found === undefined) throw new Error(`no filter ${end}`);
    return found.typed_config;
  }
  get extProc(): Json {
    return this.filter('ext_proc.sidelight');
  }
  get router(): HttpFilter['typed_config'] {
    return this.filter('router');
  }
  /** `common_config` of the log of requests, of its own: no other log is changed with it. */
  get requestLog(): Json {
    const [log] = this.hcm.access_log ?? [];
    if (log === undefined) throw new Error('no access log');
    log.typed_config.common_config = structuredClone(log.typed_config.common_config);
    return log.typed_config.common_config;
  }
  /** Changes the `common_config` of all logs alike. */
  logs(change: (common: Json) => void): void {
    const logs = [...(this.hcm.access_log ?? []), ...(this.router.upstream_log ?? [])];
    for (const common of new Set(logs.map((log) => log.typed_config.common_config))) change(common);
  }
  get cluster(): Json {
    const found = this.config.static_resources.clusters.find(({ name }) => name === 'sidelight');
    if (found === undefined) throw new Error('no cluster');
    return found;
  }
  #filter(index: number): FilterConfig {
    const found = this.config.static_resources.listeners[index]?.filter_chains[0]?.filters[0]?.typed_config;
    if (found === undefined) throw new Error(`no listener ${index}`);
    return found;
  }
}

type Change = (parts: Parts) => unknown;

function configOf(base: ShippedConfig, change: Change = () => undefined): Bootstrap {
  const config = labConfig({
    base,
    sidelightPort: sidelight.grpcPort,
    clusters: [staticCluster(upstreams.addresses, { name: 'app' })],
  });
  const parts = new Parts(config);
  // On a busy machine Sidelight, which runs in this process, is slow to answer; that is no fault to be found here.
  if (base !== 'observe') parts.extProc['message_timeout'] = '0.9s';
  for (const check of parts.cluster['health_checks'] as Json[]) Object.assign(check, { timeout: '3s' });
  change(parts);
  return config;
}

async function startWith(config: Bootstrap): Promise<EnvoyProcess> {
  const envoy = cleanup.use(await startEnvoy({ bin, config }));
  const client = http1Client(envoy.port('http'));
  for (let sent = 0; sent < 3; sent += 1) await client.request('/');
  client.close();
  return envoy;
}

const urlOf = ({ admin }: EnvoyProcess) => `http://127.0.0.1:${admin.port}`;

/** Envoy 1.37 and 1.38 count an entry that nobody took as written. */
const countsLost = ({ proxies }: Report) => !/^1\.3[78]\./.test(proxies[0]?.envoyVersion ?? '');

describe('a working config', () => {
  it.each(['full', 'observe', 'tag'] as const)('%s: nothing above information', async (base) => {
    const envoy = await startWith(configOf(base));
    const report = await doctorReport([urlOf(envoy)]);
    expect(worries(report)).toEqual([]);
    expect(report).toMatchObject({ exitCode: 0, isWhole: true });
    expect(report.notLooked.map(({ why }) => why)).toEqual([
      ...(base === 'tag' || countsLost(report) ? [] : ['Envoy before 1.39 counts them as written']),
      'that takes the proxies of a call in its order, with --chain',
    ]);
    expect(report.proxies[0]?.attached[0]).toMatchObject({
      profile: base,
      ...(base === 'tag' ? {} : { configVersion: 2 }),
    });
    expect(report.proxies[0]?.clusters).toEqual([{ cluster: 'sidelight', hosts: [`127.0.0.1:${sidelight.grpcPort}`] }]);
  });
});

const remove = (list: unknown, test: (one: Json) => boolean) => {
  const all = list as Json[];
  const index = all.findIndex(test);
  if (index === -1) throw new Error('nothing to remove');
  all.splice(index, 1);
};
const swap = (filters: HttpFilter[], a: number, b: number) => {
  [filters[a], filters[b]] = [filters[b] as HttpFilter, filters[a] as HttpFilter];
};
const rename = (log: Json, name: string) => Object.assign(log, { log_name: name });

/** What else must be found is a consequence that Envoy counts. */
const broken: [name: string, base: ShippedConfig, ids: string, change: Change][] = [
  [
    'no log at all',
    'observe',
    'nothing-attached',
    (parts) => {
      parts.hcm.access_log = [];
      delete parts.router.upstream_log;
      parts.config.static_resources.listeners.splice(1);
    },
  ],
  [
    'a second listener without ours',
    'tag',
    'chain-not-attached',
    ({ config }) => {
      const [listener] = structuredClone(config.static_resources.listeners);
      if (listener === undefined) throw new Error('no listener');
      listener.name = 'second';
      const hcm = listener.filter_chains[0]?.filters[0]?.typed_config;
      if (hcm?.http_filters !== undefined) hcm.http_filters = hcm.http_filters.slice(-1);
      config.static_resources.listeners.push(listener);
    },
  ],
  ['the removing filter after ext_proc', 'full', 'filter-order', ({ filters }) => swap(filters, 0, 1)],
  ['the adding filter before ext_proc', 'tag', 'filter-order', ({ filters }) => swap(filters, 1, 2)],
  [
    'ext_proc by its plain name',
    'full',
    'default-filter-name',
    ({ filters }) => Object.assign(filters[1] as object, { name: 'envoy.filters.http.ext_proc' }),
  ],
  ['no adding filter', 'full', 'age-not-sent', ({ filters }) => filters.splice(2, 1)],
  ['no removing filter', 'full', 'internal-headers-leak', ({ filters }) => filters.splice(0, 1)],
  [
    'the cluster is named otherwise',
    'full',
    'cluster-missing, failed-open',
    ({ cluster }) => Object.assign(cluster, { name: 'sidelite' }),
  ],
  [
    'the cluster has no host',
    'full',
    'cluster-empty, failed-open',
    ({ cluster }) => Object.assign(cluster, { load_assignment: assignment('sidelight', []) }),
  ],
  [
    'nobody listens there',
    'observe',
    'cluster-unreachable',
    ({ cluster }) => Object.assign(cluster, { load_assignment: assignment('sidelight', [`127.0.0.1:${closedPort}`]) }),
  ],
  ['no health check', 'full', 'cluster-unbounded', ({ cluster }) => delete cluster['health_checks']],
  [
    'HTTP/1.1, and so no health check by gRPC',
    'observe',
    'cluster-not-http2',
    ({ cluster }) => {
      delete cluster['typed_extension_protocol_options'];
      delete cluster['health_checks'];
    },
  ],
  ['panic mode', 'tag', 'cluster-unbounded', ({ cluster }) => delete cluster['common_lb_config']],
  ['failure_mode_allow: false', 'full', 'fails-closed', ({ extProc }) => delete extProc['failure_mode_allow']],
  [
    'a timeout of 2 s',
    'full',
    'message-timeout-long',
    ({ extProc }) => Object.assign(extProc, { message_timeout: '2s' }),
  ],
  [
    'immediate responses',
    'full',
    'immediate-response-allowed',
    ({ extProc }) => delete extProc['disable_immediate_response'],
  ],
  ['no mutation rules', 'full', 'mutations-open', ({ extProc }) => delete extProc['mutation_rules']],
  ['all headers are sent', 'full', 'headers-open', ({ extProc }) => delete extProc['forward_rules']],
  [
    'bodies are sent',
    'full',
    'body-sent',
    ({ extProc }) => Object.assign(extProc['processing_mode'] as Json, { response_body_mode: 'BUFFERED' }),
  ],
  [
    'an attribute in the skipped phase',
    'full',
    'attribute-not-sent',
    ({ extProc }) => Object.assign(extProc, { request_attributes: ['source.address'] }),
  ],
  [
    'the whole node',
    'full',
    'node-attribute',
    ({ extProc }) => (extProc['response_attributes'] as string[]).push('xds.node'),
  ],
  [
    'no attempt count',
    'tag',
    'attributes-missing',
    ({ extProc }) =>
      Object.assign(extProc, {
        response_attributes: (extProc['response_attributes'] as string[]).filter(
          (name) => name !== 'upstream.request_attempt_count',
        ),
      }),
  ],
  ['no metadata namespace', 'full', 'metadata-dropped', ({ extProc }) => delete extProc['metadata_options']],
  [
    'a route switches it off',
    'full',
    'route-switches-off',
    ({ hcm }) =>
      Object.assign(hcm.route_config?.virtual_hosts[0]?.routes[0] as Json, {
        typed_per_filter_config: {
          'envoy.filters.http.ext_proc.sidelight': {
            '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute',
            disabled: true,
          },
        },
      }),
  ],
  [
    'ext_proc says tag beside a log of full',
    'full',
    'profile-mismatch',
    ({ extProc }) =>
      Object.assign((extProc['grpc_service'] as { initial_metadata: Json[] }).initial_metadata[0] as Json, {
        value: 'tag',
      }),
  ],
  ['full without ext_proc', 'full', 'profile-mismatch', ({ filters }) => filters.splice(0, 3)],
  [
    'a log name of no shape',
    'observe',
    'log-name-unknown',
    (parts) => {
      parts.config.static_resources.listeners.splice(1);
      parts.logs((log) => rename(log, 'sidelight'));
    },
  ],
  ['no log of attempts', 'full', 'logger-missing', ({ router }) => delete router.upstream_log],
  ['no log of requests', 'full', 'logger-missing', ({ hcm }) => Object.assign(hcm, { access_log: [] })],
  [
    'logs that differ in a buffer',
    'full',
    'loggers-differ',
    ({ requestLog }) => Object.assign(requestLog, { buffer_size_bytes: 1024 }),
  ],
  [
    'a log of errors alone',
    'full',
    'logger-filtered',
    ({ hcm }) =>
      Object.assign(hcm.access_log?.[0] as Json, {
        filter: {
          status_code_filter: { comparison: { op: 'GE', value: { default_value: 500, runtime_key: 'lab.none' } } },
        },
      }),
  ],
  ['no key', 'full', 'key-not-early', ({ hcm }) => delete hcm['early_header_mutation_extensions']],
  [
    'the key is appended',
    'observe',
    'key-not-overwritten',
    ({ hcm }) => {
      const text = JSON.stringify(hcm['early_header_mutation_extensions']);
      hcm['early_header_mutation_extensions'] = JSON.parse(text.replace('OVERWRITE_IF_EXISTS_OR_ADD', 'ADD_IF_ABSENT'));
    },
  ],
  [
    'no tag key',
    'full',
    'key-not-logged',
    (parts) => parts.logs((log) => remove(log['custom_tags'], ({ tag }) => tag === 'key')),
  ],
  [
    'no tag cluster',
    'full',
    'tags-missing',
    (parts) => parts.logs((log) => remove(log['custom_tags'], ({ tag }) => tag === 'cluster')),
  ],
  ['no flush of long requests', 'full', 'no-periodic-flush', ({ router }) => delete router.upstream_log_options],
  ['no flush of long connections', 'observe', 'no-periodic-flush', ({ tcp }) => delete tcp.access_log_options],
  ['a log of version 1', 'full', 'config-old', (parts) => parts.logs((log) => rename(log, 'sidelight.full'))],
  [
    'the route leads to Sidelight',
    'observe',
    'calls-itself',
    ({ hcm }) =>
      Object.assign(hcm.route_config?.virtual_hosts[0]?.routes[0]?.['route'] as Json, { cluster: 'sidelight' }),
  ],
];

const newDns = 'envoy.reloadable_features.enable_new_dns_implementation';
const httpFilter = 'type.googleapis.com/envoy.extensions.filters.http';

/** A filter as only a share of the requests passes it. */
function sampled(filter: HttpFilter): Json {
  const action = {
    name: 'sample',
    typed_config: {
      '@type': `${httpFilter}.composite.v3.ExecuteFilterAction`,
      typed_config: { name: filter.name, typed_config: filter.typed_config },
      sample_percent: { default_value: { numerator: 50 }, runtime_key: 'lab.sampled' },
    },
  };
  return {
    '@type': 'type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher',
    xds_matcher: { on_no_match: { action } },
    extension_config: { name: 'composite', typed_config: { '@type': `${httpFilter}.composite.v3.Composite` } },
  };
}

describe('a config with one change', () => {
  it.each(broken)('%s (%s): %s', async (_, base, ids, change) => {
    const envoy = await startWith(configOf(base, change));
    const report = await doctorReport([urlOf(envoy)]);
    expect(worries(report).join(', ')).toBe(ids);
  });
});

it('an update that Envoy refuses is told with its own words, and what runs on is looked at', async () => {
  const dir = shared.use(tempDir());
  const file = path.join(dir.path, 'listeners.json');
  const config = configOf('full');
  const resources = config.static_resources.listeners.splice(0).map((listener) => ({
    '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
    ...listener,
  }));
  const write = (to: string) => writeFileSync(to, JSON.stringify({ resources }));
  write(file);
  Object.assign(config, {
    node: { id: 'shop-1', cluster: 'shop' },
    dynamic_resources: { lds_config: { path_config_source: { path: file }, resource_api_version: 'V3' } },
  });
  const envoy = await startWith(config);
  resources[0]?.filter_chains[0]?.filters[0]?.typed_config.http_filters?.pop();
  write(`${file}.new`);
  renameSync(`${file}.new`, file);
  await envoy.admin.waitForStat('listener_manager.lds.update_rejected', (count) => count > 0);
  const report = await doctorReport([urlOf(envoy)]);
  expect(worries(report)).toEqual(['config-rejected']);
  expect(report.findings[0]).toMatchObject({ proxy: 'shop-1', where: ['listener http'] });
  expect(report.findings[0]?.evidence).toContain('is the last filter in a http filter chain');
});

describe('what the mesh itself hides', () => {
  const routeOf = ({ hcm }: Parts) => hcm.route_config?.virtual_hosts[0]?.routes[0]?.['route'] as Json;

  it('hosts refuse, and the route has no retry policy', async () => {
    const envoy = await startWith(
      configOf('full', (parts) => {
        const app = parts.config.static_resources.clusters.find(({ name }) => name === 'app') as Json;
        app['load_assignment'] = assignment('app', [`127.0.0.1:${closedPort}`]);
        delete routeOf(parts)['retry_policy'];
      }),
    );
    const report = await doctorReport([urlOf(envoy)]);
    expect(worries(report)).toEqual(['failures-not-retried']);
    expect(report.findings[0]?.evidence).toContain(`127.0.0.1:${closedPort} 3`);
  });

  it('retry statistics that are not collected are never read as 0', async () => {
    const envoy = await startWith(
      configOf('full', ({ config }) =>
        Object.assign(config, {
          stats_config: { stats_matcher: { exclusion_list: { patterns: [{ contains: 'upstream_rq_retry' }] } } },
        }),
      ),
    );
    const { findings, exitCode } = await doctorReport([urlOf(envoy)]);
    expect(findings.map(({ id, where }) => [id, ...where])).toEqual([['retry-stats-absent', 'cluster app']]);
    expect(exitCode).toBe(0);
  });

  it('LOGICAL_DNS keeps connections where this Envoy has the older code', async () => {
    const flags = (text: string) => ({ layers: [{ name: 'lab', static_layer: { [newDns]: text } }] });
    const withFlag = (flag: string) =>
      configOf('observe', ({ config }) => {
        const app = config.static_resources.clusters.find(({ name }) => name === 'app') as Json;
        Object.assign(app, {
          type: 'LOGICAL_DNS',
          load_assignment: assignment('app', [`localhost:${upstreams.port}`]),
        });
        Object.assign(config, { layered_runtime: flags(flag) });
      });
    for (const [flag, ids] of [
      ['false', ['dns-pins']],
      ['true', []],
    ] as const) {
      const envoy = await startWith(withFlag(flag));
      expect(worries(await doctorReport([urlOf(envoy)], { ignore: ['failures-not-retried'] }))).toEqual(ids);
    }
  });

  it('requests that pass untagged are counted, and entries that are dropped', async () => {
    const envoy = await startWith(
      configOf('full', (parts) => {
        parts.cluster['load_assignment'] = assignment('sidelight', [`127.0.0.1:${closedPort}`]);
        parts.logs((log) => Object.assign(log, { buffer_size_bytes: 1 }));
      }),
    );
    const report = await doctorReport([urlOf(envoy)]);
    const lost = countsLost(report) ? ['entries-dropped'] : [];
    expect(worries(report)).toEqual(['cluster-unreachable', ...lost, 'failed-open']);
  });

  it('before the first request there is nothing to see', async () => {
    const envoy = cleanup.use(await startEnvoy({ bin, config: configOf('observe') }));
    expect((await doctorReport([urlOf(envoy)])).findings.map(({ id }) => id)).toEqual(['no-requests']);
  });

  it('traffic for a host that leaves by a cluster of another listener is named', async () => {
    const config = configOf('observe', (parts) => {
      parts.config.static_resources.clusters.push(staticCluster(upstreams.addresses, { name: 'pay' }));
      const [first] = structuredClone(parts.config.static_resources.listeners);
      if (first === undefined) throw new Error('no listener');
      first.name = 'other';
      const host = first.filter_chains[0]?.filters[0]?.typed_config.route_config?.virtual_hosts[0];
      Object.assign(host as Json, { domains: ['pay.lab.test'] });
      Object.assign(host?.routes[0]?.['route'] as Json, { cluster: 'pay' });
      parts.config.static_resources.listeners.push(first);
    });
    const url = urlOf(await startWith(config));
    const report = await doctorReport([url], { host: 'pay.lab.test' });
    expect(worries(report)).toEqual(['traffic-elsewhere']);
    expect(report.findings[0]?.evidence).toMatch(/^pay has 0 requests; app \(the same endpoint\) has 3 requests/);
    expect(report.hostClusters.map(({ cluster, traffic }) => [cluster, traffic?.requests])).toEqual([
      ['app', 3],
      ['pay', 0],
    ]);
    expect(worries(await doctorReport([url], { host: 'nobody.lab.test' }))).toEqual(['host-unknown']);
  });

  it('a proxy that goes by no host is not blamed for a catch-all', async () => {
    const report = await doctorReport([urlOf(await startWith(configOf('observe')))], { host: 'any.lab.test' });
    expect(worries(report)).toEqual([]);
    expect(report.hostClusters.map(({ cluster, isMeant }) => [cluster, isMeant])).toEqual([['app', true]]);
  });

  it('three layers that retry, and a hop that keeps the key of the one before', async () => {
    const urls: string[] = [];
    let next = upstreams.addresses;
    for (const hop of [3, 2, 1]) {
      const config = configOf('observe', (parts) => {
        const app = parts.config.static_resources.clusters.find(({ name }) => name === 'app') as Json;
        app['load_assignment'] = assignment('app', next);
        if (hop === 3) delete parts.hcm['early_header_mutation_extensions'];
      });
      const envoy = await startWith(config);
      next = [`127.0.0.1:${envoy.port('http')}`];
      urls.unshift(urlOf(envoy));
    }
    const report = await doctorReport(urls, { chain: true });
    expect(worries(report)).toEqual(['key-not-early', 'next-hop-key', 'retry-layers']);
    expect(report.findings.find(({ id }) => id === 'retry-layers')?.evidence).toBe(
      'retries: 2 × 2 × 2: up to 27 sends for one request',
    );
    expect(report.notLooked.map(({ what }) => what)).not.toContain(
      'retries layer over layer, and keys from hop to hop',
    );
    expect(worries(await doctorReport(urls))).toEqual(['key-not-early']);
  });
});

it('what samples, by a matcher, is found as what does not', async () => {
  const envoy = await startWith(
    configOf('full', ({ filters }) => {
      const [, extProc] = filters;
      if (extProc === undefined) throw new Error('no filter');
      filters[1] = { name: 'sampled', typed_config: sampled(extProc) };
    }),
  );
  const report = await doctorReport([urlOf(envoy)]);
  expect(worries(report)).toEqual([]);
  expect(report.proxies[0]?.attached[0]?.profile).toBe('full');
  await envoy.admin.setRuntime({ 'lab.sampled': '0' });
  expect(worries(await doctorReport([urlOf(envoy)]))).toEqual(['switched-off']);
  await envoy.admin.setRuntime({ 'lab.sampled': '' });
  expect(worries(await doctorReport([urlOf(envoy)]))).toEqual([]);
});
