import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { allowInject } from './inject-variant.ts';

/** The files in `envoy/`. */
export type ShippedConfig = 'observe' | 'full' | 'tag';

/** JSON as Envoy takes it; only what the lab touches has a name. */
export type Json = Record<string, unknown>;

export interface Bootstrap extends Json {
  admin: { address: SocketAddress };
  static_resources: { listeners: Listener[]; clusters: Cluster[] };
}
export interface SocketAddress {
  socket_address: { address: string; port_value: number };
}
export interface Cluster extends Json {
  name: string;
}
export interface Listener extends Json {
  name: string;
  address: SocketAddress;
  filter_chains: { filters: { name: string; typed_config: FilterConfig }[] }[];
}
export interface FilterConfig extends Json {
  http_filters?: HttpFilter[];
  route_config?: { virtual_hosts: (Json & { routes: Json[] })[] };
  access_log?: AccessLog[];
  access_log_options?: Json;
}
export interface HttpFilter extends Json {
  name: string;
  typed_config: Json & { upstream_log?: AccessLog[]; upstream_log_options?: Json };
}
export interface AccessLog extends Json {
  typed_config: Json & { common_config: Json };
}

/** Reads a shipped config as an operator would give it to Envoy. */
export function shippedConfig(name: ShippedConfig): Bootstrap {
  return parse(readFileSync(shippedConfigFile(name), 'utf8')) as Bootstrap;
}

export function shippedConfigFile(name: ShippedConfig): URL {
  return new URL(`../../envoy/${name}.yaml`, import.meta.url);
}

export interface LabConfigOptions {
  /** Which shipped file; the lab changes only what is listed here. */
  base: ShippedConfig;
  /** Where the service, or what stands in for it, listens. */
  sidelightPort: number;
  /** Clusters by name: they replace `app` and `tcp-app` of the shipped file, or are added. */
  clusters: readonly Cluster[];
  /** Envoy routes, in order. Absent: the shipped route, with the shipped retry policy. */
  routes?: readonly Json[];
  /** HTTP filters that go before everything of ours. */
  earlierFilters?: readonly HttpFilter[];
  /** `full` and `tag`: the variant of the comments in the shipped file, in which the tagger sets `traceparent`. */
  inject?: boolean;
  /** Runtime flags, such as `envoy.reloadable_features.enable_new_dns_implementation`. */
  runtime?: Json;
  /** How long Envoy keeps log entries back, ms. */
  logFlushMs?: number;
  /** Time between two periodic entries of a TCP connection, ms; Envoy's least is 1. */
  tcpLogFlushMs?: number;
  /** Time between two periodic entries of an HTTP attempt that lives, ms; Envoy's least is 1. */
  httpLogFlushMs?: number;
  /** More of Envoy's `TcpProxy`, such as `idle_timeout`. */
  tcpProxy?: Json;
}

/**
 * A shipped config made fit for tests: every listener and the admin on a port of the kernel's choice, our cluster where
 * the stand-in listens, clusters and routes of the test. What we ship is what runs.
 */
export function labConfig(options: LabConfigOptions): Bootstrap {
  const config = shippedConfig(options.base);
  config.admin.address.socket_address.port_value = 0;
  config['layered_runtime'] = {
    layers: [
      { name: 'lab', static_layer: options.runtime ?? {} },
      { name: 'admin', admin_layer: {} },
    ],
  };
  const resources = config.static_resources;
  resources.clusters = mergeClusters(resources.clusters, options);
  for (const listener of resources.listeners) adaptListener(listener, options);
  return config;
}

function mergeClusters(shipped: readonly Cluster[], options: LabConfigOptions): Cluster[] {
  const clusters = new Map(shipped.map((cluster) => [cluster.name, cluster]));
  for (const cluster of options.clusters) clusters.set(cluster.name, cluster);
  const ours = clusters.get('sidelight');
  if (!ours) throw new Error('the shipped config has no cluster sidelight');
  ours['load_assignment'] = assignment('sidelight', [`127.0.0.1:${options.sidelightPort}`]);
  return [...clusters.values()];
}

const tcpProxyType = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';

function adaptListener(listener: Listener, options: LabConfigOptions): void {
  listener.address.socket_address.port_value = 0;
  for (const { typed_config: filter } of listener.filter_chains.flatMap((chain) => chain.filters)) {
    for (const log of accessLogs(filter)) {
      log.typed_config.common_config['buffer_flush_interval'] = duration(options.logFlushMs ?? 50);
    }
    if (filter.access_log_options && options.tcpLogFlushMs !== undefined) {
      filter.access_log_options['access_log_flush_interval'] = duration(options.tcpLogFlushMs);
    }
    for (const { typed_config: http } of filter.http_filters ?? []) {
      if (http.upstream_log_options && options.httpLogFlushMs !== undefined) {
        http.upstream_log_options['upstream_log_flush_interval'] = duration(options.httpLogFlushMs);
      }
    }
    if (filter['@type'] === tcpProxyType) Object.assign(filter, options.tcpProxy);
    const host = filter.route_config?.virtual_hosts[0];
    if (host && options.routes) host.routes = [...options.routes];
    if (options.inject) allowInject(filter.http_filters ?? []);
    filter.http_filters?.unshift(...(options.earlierFilters ?? []));
  }
}

/** Every gRPC access log of a network filter: its own, and the router's per attempt. */
export function accessLogs(filter: FilterConfig): AccessLog[] {
  const perAttempt = (filter.http_filters ?? []).flatMap((http) => http.typed_config.upstream_log ?? []);
  return [...(filter.access_log ?? []), ...perAttempt];
}

/** Milliseconds as protobuf JSON writes a duration. */
export function duration(ms: number): string {
  return `${ms / 1_000}s`;
}

/** `ip:port` texts (IPv4) as a cluster's `load_assignment`. */
export function assignment(cluster: string, addresses: readonly string[]): Json {
  const lb_endpoints = addresses.map((text) => {
    const [address, port] = text.split(':');
    return { endpoint: { address: { socket_address: { address, port_value: Number(port) } } } };
  });
  return { cluster_name: cluster, endpoints: [{ lb_endpoints }] };
}
