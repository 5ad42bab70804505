import type { ConfigInput } from '../../src/config/schema.ts';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import { dnsCluster } from '../../src/lab/clusters.ts';
import type { DnsServer } from '../../src/lab/dns-server.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { keepSending, oldDns, routeTo, startReporter } from './reporting.ts';
import type { TestSidelight } from './sidelight.ts';
import { until } from './until.ts';

export const oldIp = '127.0.0.11';
export const newIp = '127.0.0.12';

export interface MoveOptions {
  /** The cluster, the node and the workload; DNS is asked for `NAME.test`. */
  name: string;
  kind?: 'STRICT_DNS' | 'LOGICAL_DNS';
  /** Of the upstreams: `oldIp` and `newIp`, unless told otherwise. */
  ips?: string[];
  /** Any other field of the cluster. */
  extra?: Json;
  /** More of the route's action. */
  action?: Json;
  /** By default LOGICAL_DNS behaves as in Envoy up to 1.38. */
  runtime?: Json;
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

/** A real Envoy with one cluster by DNS whose name is about to move; at first it has `oldIp` alone. */
export async function setUpMove(
  cleanup: Cleanup,
  { dns, sidelight }: { dns: DnsServer; sidelight: Pick<TestSidelight, 'grpcPort' | 'metric'> },
  { name, kind = 'STRICT_DNS', ips = [oldIp, newIp], extra = {}, action = {}, runtime }: MoveOptions,
) {
  const host = `${name}.test`;
  const answer = (...addresses: string[]) => dns.set(host, { kind: 'addresses', addresses, ttlSeconds: 1 });
  answer(oldIp);
  const upstreams = cleanup.use(await Upstreams.start({ ips }));
  const cluster = dnsCluster({ name, kind, host, port: upstreams.port, dnsPort: dns.port, extra });
  const envoy = await startReporter(cleanup, name, {
    sidelightPort: sidelight.grpcPort,
    clusters: [cluster],
    routes: [routeTo(name, undefined, action)],
    runtime: runtime ?? (kind === 'LOGICAL_DNS' ? oldDns : {}),
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
