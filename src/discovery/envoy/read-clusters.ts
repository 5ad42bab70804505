import { z } from 'zod';
import { parseHostPort } from '../../lib/host-port.ts';
import { canonicalIp, ipWithPort } from '../../lib/ip.ts';
import type { ProxyHost } from '../../model/view.ts';

const address = z.object({
  socket_address: z.object({ address: z.string(), port_value: z.number().default(0) }).optional(),
  pipe: z.object({ path: z.string() }).optional(),
  envoy_internal_address: z
    .object({ server_listener_name: z.string().default(''), endpoint_id: z.string().default('') })
    .optional(),
});
type WireAddress = z.output<typeof address>;

const hostStatus = z.object({
  address,
  /** A 64-bit number is a text in JSON; 0 is left out. */
  stats: z.array(z.object({ name: z.string(), value: z.string().optional() })).default([]),
  health_status: z
    .object({
      failed_active_health_check: z.boolean().optional(),
      failed_outlier_check: z.boolean().optional(),
      pending_dynamic_removal: z.boolean().optional(),
      eds_health_status: z.string().optional(),
    })
    .default({}),
});

/** `/clusters?format=json`. */
export const clustersAnswer = z.object({
  cluster_statuses: z
    .array(
      z.object({
        name: z.string(),
        observability_name: z.string().optional(),
        host_statuses: z.array(hostStatus).default([]),
      }),
    )
    .default([]),
});

/** A cluster as the proxy lists it. */
export interface ListedCluster {
  /** What its statistics are called: another name where the cluster has an `alt_stat_name`, or a colon in its name. */
  statName: string;
  /** By `ip:port`; a pipe by its path. */
  hosts: ReadonlyMap<string, ProxyHost>;
}

export function listedClusters(answer: z.output<typeof clustersAnswer>): Map<string, ListedCluster> {
  return new Map(
    answer.cluster_statuses.map(({ name, observability_name: statName = name, host_statuses: hosts }) => [
      name,
      {
        statName: statNameOf(statName),
        hosts: new Map(hosts.map((host) => [endpointKey(host.address), proxyHost(host)])),
      },
    ]),
  );
}

/** `http://a:80` → `http_a_80` (Envoy 1.40). */
export function statNameOf(cluster: string): string {
  return cluster.replaceAll(/:\/{0,2}/g, '_');
}

function proxyHost({ stats, health_status: health }: z.output<typeof hostStatus>): ProxyHost {
  const ejected = health.failed_active_health_check === true || health.failed_outlier_check === true;
  const refused = ['UNHEALTHY', 'TIMEOUT', 'DRAINING'].includes(health.eds_health_status ?? 'HEALTHY');
  return {
    activeConnections: Number(stats.find(({ name }) => name === 'cx_active')?.value ?? 0),
    healthy: !ejected && !refused,
    pendingRemoval: health.pending_dynamic_removal === true,
  };
}

const configuredEndpoint = z.object({
  endpoint: z.object({ address, additional_addresses: z.array(z.object({ address })).default([]) }),
});

/** `/config_dump?include_eds&resource=…_endpoint_configs`. */
export const endpointsAnswer = z.object({
  configs: z
    .array(
      z.object({
        endpoint_config: z.object({
          cluster_name: z.string().default(''),
          endpoints: z.array(z.object({ lb_endpoints: z.array(configuredEndpoint).default([]) })).default([]),
        }),
      }),
    )
    .default([]),
});

/** By the name that the endpoints are asked by: a host's own address → its further ones, where it has some. */
export function furtherAddresses(
  answer: z.output<typeof endpointsAnswer>,
): Map<string, ReadonlyMap<string, readonly string[]>> {
  return new Map(
    answer.configs.map(({ endpoint_config: { cluster_name: name, endpoints } }) => {
      const all = endpoints.flatMap(({ lb_endpoints: hosts }) => hosts.map(({ endpoint }) => endpoint));
      const some = all.filter(({ additional_addresses: further }) => further.length > 0);
      return [
        name,
        new Map(
          some.map((host) => [
            endpointKey(host.address),
            host.additional_addresses.map((further) => endpointKey(further.address)),
          ]),
        ),
      ];
    }),
  );
}

/** As the pin judge spells an endpoint: of an Envoy-internal address the inner one counts. */
function endpointKey({ socket_address: socket, pipe, envoy_internal_address: internal }: WireAddress): string {
  if (socket !== undefined) return ipWithPort(canonicalIp(socket.address) ?? socket.address, socket.port_value);
  if (pipe !== undefined) return pipe.path;
  const inner = parseHostPort(internal?.endpoint_id ?? '');
  const ip = inner && canonicalIp(inner.host);
  if (ip !== undefined) return ipWithPort(ip, inner?.port ?? 0);
  return `envoy://${internal?.server_listener_name ?? ''}/${internal?.endpoint_id ?? ''}`;
}
