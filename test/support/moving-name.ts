import type { ConfigInput } from '../../src/config/schema.ts';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import { dnsCluster } from '../../src/lab/clusters.ts';
import type { DnsServer } from '../../src/lab/dns-server.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { Upstreams, type UpstreamsOptions } from '../../src/lab/upstreams.ts';
import {
  clusterOf,
  endpointOf,
  eventsOf,
  keepSending,
  newDns,
  pinsOf,
  type ReporterOptions,
  routeTo,
  startReporter,
} from './reporting.ts';
import { startTestSidelight, type TestSidelight } from './sidelight.ts';
import { until } from './until.ts';

export const oldIp = '127.0.0.11';
export const newIp = '127.0.0.12';

/** The two kinds of DNS clusters that an Envoy may have, by the runtime flag: 1.37 to 1.40 obey it. */
export const bothKindsOfDns = [
  ['old', newDns(false)],
  ['new', newDns(true)],
] as const;

export interface MoveOptions {
  /** The cluster, the node and the workload; DNS is asked for `NAME.test`. */
  name: string;
  kind?: 'STRICT_DNS' | 'LOGICAL_DNS';
  /** Of the upstreams: `oldIp` and `newIp`, unless told otherwise. */
  ips?: string[];
  /** What DNS says at first: `oldIp` alone, unless told otherwise. */
  first?: string[];
  upstreams?: Pick<UpstreamsOptions, 'protocol' | 'keepAliveMs'>;
  /** Any other field of the cluster; they win. */
  extra?: Json;
  /** More of the route's action. */
  action?: Json;
  /** By default LOGICAL_DNS behaves as in Envoy up to 1.38. */
  runtime?: Json;
  ttlSeconds?: number;
  /** Of the Envoy. */
  reporter?: Partial<ReporterOptions>;
}

/** What discovery must be told so that it asks the same server as the Envoy. */
export function asksFor(names: readonly string[], dns: DnsServer, graceMs?: number): ConfigInput {
  const grace = graceMs === undefined ? {} : { graceMs };
  return {
    clusters: names.map((name) => ({ match: name, host: `${name}.test`, ...grace })),
    discovery: {
      dns: { servers: [`127.0.0.1:${dns.port}`], sameResolverAsProxy: true, refreshMs: 500, timeoutMs: 200 },
    },
    pins: { quietMs: 2000 },
  };
}

/** Time between two questions to an Envoy's admin interface, and for its answer. */
const admin = { refreshMs: 500, timeoutMs: 450 };

/** A name that moves under a service of its own. `rule`: what its config says of the cluster; `asksEnvoy`: it asks the Envoy too. */
export async function setUpOwnMove(
  cleanup: Cleanup,
  dns: DnsServer,
  options: MoveOptions & {
    rule?: Partial<NonNullable<ConfigInput['clusters']>[number]>;
    asksEnvoy?: boolean;
    otlp?: { endpoint: string };
    page?: ConfigInput['page'];
  },
) {
  const { rule, asksEnvoy, otlp, page, ...of } = options;
  const adminPort = asksEnvoy ? await freePort() : 0;
  const { discovery, pins } = asksFor([], dns);
  const urls = asksEnvoy ? [`http://127.0.0.1:${adminPort}`] : [];
  const sidelight = cleanup.use(
    await startTestSidelight({
      clusters: [{ match: of.name, host: `${of.name}.test`, ...rule }],
      discovery: { ...discovery, envoyAdmin: { ...admin, urls } },
      ...(pins ? { pins } : {}),
      ...(otlp ? { otlp } : {}),
      ...(page ? { page } : {}),
    }),
  );
  const move = await setUpMove(
    cleanup,
    { dns, sidelight },
    {
      ...of,
      reporter: { adminPort, ...of.reporter },
    },
  );
  const { name } = of;
  const counted = (metric: string, labels = {}) => sidelight.metric(metric, { cluster: name, ...labels });
  return {
    ...move,
    sidelight,
    events: (event: string) => eventsOf(sidelight, event, name),
    pins: () => pinsOf(sidelight, name),
    cluster: () => clusterOf(sidelight, name),
    endpoint: (ip: string) => endpointOf(sidelight, name, `${ip}:${move.upstreams.port}`),
    /** Requests over stale connections, and connections that ever were stale, by any name. */
    stale: async () => ({
      requests: (await move.requests('stale')) + (await move.requests('stale_view')),
      connections:
        (await counted('sidelight_pin_events_total', { event: 'stale' })) +
        (await counted('sidelight_pin_events_total', { event: 'stale_view' })),
    }),
  };
}

/** What `stale()` says where nothing ever was. */
export const nothing = { requests: 0, connections: 0 };

export type OwnMove = Awaited<ReturnType<typeof setUpOwnMove>>;

/** A real Envoy with one cluster by DNS whose name is about to move. */
export async function setUpMove(
  cleanup: Cleanup,
  { dns, sidelight }: { dns: DnsServer; sidelight: Pick<TestSidelight, 'grpcPort' | 'metric'> },
  options: MoveOptions,
) {
  const { name, kind = 'STRICT_DNS', ips = [oldIp, newIp], extra = {}, action = {}, ttlSeconds = 1 } = options;
  const { first = [oldIp], reporter = {} } = options;
  const host = `${name}.test`;
  const answer = (...addresses: string[]) => dns.set(host, { kind: 'addresses', addresses, ttlSeconds });
  answer(...first);
  const upstreams = cleanup.use(await Upstreams.start({ ips, ...options.upstreams }));
  const http2 = options.upstreams?.protocol === 'http2';
  const cluster = dnsCluster({ name, kind, host, port: upstreams.port, dnsPort: dns.port, http2 });
  const envoy = await startReporter(cleanup, name, {
    sidelightPort: sidelight.grpcPort,
    clusters: [{ ...cluster, ...extra }],
    routes: [routeTo(name, undefined, action)],
    runtime: options.runtime ?? (kind === 'LOGICAL_DNS' ? newDns(false) : {}),
    ...reporter,
  });
  const own = (pin: string | undefined) => ({ cluster: name, ...(pin === undefined ? {} : { pin }) });
  /** Requests with this pin, or all. */
  const requests = (pin?: string) => sidelight.metric('sidelight_pinned_requests_total', own(pin));
  return {
    envoy,
    upstreams,
    /** From now on DNS says these. */
    answer,
    /** From now on DNS says that there is no address. */
    answerNothing: () => dns.set(host, { kind: 'nodata' }),
    requests,
    /** Connections with this pin now. */
    connections: (pin: string) => sidelight.metric('sidelight_pins', own(pin)),
    /** Addresses that came or left. */
    changes: () => sidelight.metric('sidelight_discovery_changes_total', own(undefined)),
    /** What contradicts the bytes. */
    listedByEnvoy: async () => (await envoy.admin.hosts(name)).map(({ address }) => address.split(':')[0]),
    /** Traffic that has been judged. */
    traffic: async (pin = 'current') => {
      const started = keepSending(cleanup, envoy);
      await until(`${pin} requests of ${name}`, async () => (await requests(pin)) > 0);
      return started;
    },
  };
}

export type Move = Awaited<ReturnType<typeof setUpMove>>;
