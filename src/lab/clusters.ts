import { assignment, type Cluster, duration, type Json } from './envoy-config.ts';

export interface ClusterOptions {
  name: string;
  /** 250 by default. */
  connectTimeoutMs?: number;
  /** HTTP/2 to the upstream; HTTP/1.1 by default. */
  http2?: boolean;
  /** Any other field of Envoy's `Cluster`, such as `circuit_breakers`. */
  extra?: Json;
}

/** A cluster of fixed `ip:port` addresses. */
export function staticCluster(addresses: readonly string[], options: ClusterOptions): Cluster {
  return { ...common(options), type: 'STATIC', load_assignment: assignment(options.name, addresses) };
}

export interface DnsClusterOptions extends ClusterOptions {
  kind: 'STRICT_DNS' | 'LOGICAL_DNS';
  host: string;
  /** Port of the endpoints. */
  port: number;
  /** UDP port of the private DNS server on 127.0.0.1. */
  dnsPort: number;
  /** Time between two questions, ms; a shorter TTL wins. 1,000 by default. */
  refreshMs?: number;
}

/**
 * A cluster that asks the private DNS server. With the runtime flag `enable_new_dns_implementation` false,
 * `LOGICAL_DNS` keeps its old connections after a flip, as Envoy up to 1.38 does.
 */
export function dnsCluster(options: DnsClusterOptions): Cluster {
  return {
    ...common(options),
    type: options.kind,
    dns_lookup_family: 'V4_ONLY',
    respect_dns_ttl: true,
    dns_refresh_rate: duration(options.refreshMs ?? 1_000),
    // Without it a failed lookup is not repeated for a whole `dns_refresh_rate`.
    dns_failure_refresh_rate: { base_interval: duration(options.refreshMs ?? 1_000) },
    typed_dns_resolver_config: {
      name: 'envoy.network.dns_resolver.cares',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
        resolvers: [{ socket_address: { address: '127.0.0.1', port_value: options.dnsPort } }],
        dns_resolver_options: { no_default_search_domain: true },
      },
    },
    load_assignment: assignment(options.name, [`${options.host}:${options.port}`]),
  };
}

function common(options: ClusterOptions): Cluster {
  return {
    name: options.name,
    connect_timeout: duration(options.connectTimeoutMs ?? 250),
    ...(options.http2 ? { typed_extension_protocol_options: http2Options } : {}),
    ...options.extra,
  };
}

const http2Options = httpOptions({ explicit_http_config: { http2_protocol_options: {} } });

/** A cluster's `typed_extension_protocol_options` with these of Envoy's `HttpProtocolOptions`. */
function httpOptions(options: Json): Json {
  const name = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
  return { [name]: { '@type': `type.googleapis.com/${name}`, ...options } };
}

/** For `extra` of an HTTP/1.1 cluster: what applies to each of its connections, such as `max_connection_duration`. */
export function commonHttpOptions(options: Json): Json {
  return {
    typed_extension_protocol_options: httpOptions({
      common_http_protocol_options: options,
      explicit_http_config: { http_protocol_options: {} },
    }),
  };
}
