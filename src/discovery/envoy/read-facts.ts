import { z } from 'zod';

const duration = z.string().optional();
const commonOptions = z.object({ idle_timeout: duration, max_connection_duration: duration }).default({});

const cluster = z.object({
  name: z.string(),
  type: z.string().optional(),
  cluster_type: z
    .object({
      name: z.string(),
      typed_config: z.object({ all_addresses_in_single_endpoint: z.boolean().optional() }).optional(),
    })
    .optional(),
  eds_cluster_config: z.object({ service_name: z.string().optional() }).optional(),
  typed_extension_protocol_options: z
    .record(z.string(), z.object({ common_http_protocol_options: commonOptions }))
    .default({}),
  common_http_protocol_options: commonOptions,
  common_lb_config: z.object({ close_connections_on_host_set_change: z.boolean().optional() }).default({}),
  ignore_health_on_host_removal: z.boolean().default(false),
});

/** `/config_dump?resource=…_clusters`. */
export const configAnswer = z.object({ configs: z.array(z.object({ cluster })).default([]) });

/** What `configAnswer` reads: all else, certificates above all, stays in the proxy. Envoy 1.37 to 1.40 take it. */
export const configMask = Object.keys(cluster.shape)
  .map((field) => `cluster.${field}`)
  .join(',');

/** `/server_info`. */
export const serverAnswer = z.object({
  version: z.string().default(''),
  state: z.string(),
  node: z.object({ id: z.string().default('') }).default({ id: '' }),
});

/** `/runtime`: only what some layer sets is there. */
export const runtimeAnswer = z.object({
  entries: z.record(z.string(), z.object({ final_value: z.string() })).default({}),
});

/** `/stats?format=json`; histograms have another shape. */
export const statsAnswer = z.object({
  stats: z.array(z.object({ name: z.string().optional(), value: z.unknown() })).default([]),
});

/** What a cluster's own config says of it. Changes with the config only. */
export interface ClusterFacts {
  type: string | undefined;
  /** By what its endpoints are asked for, where that is not its name. */
  edsName: string | undefined;
  idleTimeoutMs: number | undefined;
  maxConnectionDurationMs: number | undefined;
  closesOnHostSetChange: boolean;
  ignoresHealthOnRemoval: boolean;
}

export function clusterFacts({ configs }: z.output<typeof configAnswer>): Map<string, ClusterFacts> {
  return new Map(configs.map(({ cluster: config }) => [config.name, factsOf(config)]));
}

const httpOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

function factsOf(config: z.output<typeof cluster>): ClusterFacts {
  const common = config.typed_extension_protocol_options[httpOptions]?.common_http_protocol_options;
  // The field of the cluster itself is deprecated, and is not read beside the other.
  const { idle_timeout: idle, max_connection_duration: longest } = common ?? config.common_http_protocol_options;
  return {
    type: typeOf(config),
    edsName: config.eds_cluster_config?.service_name || undefined,
    idleTimeoutMs: durationMs(idle),
    maxConnectionDurationMs: durationMs(longest),
    closesOnHostSetChange: config.common_lb_config.close_connections_on_host_set_change === true,
    ignoresHealthOnRemoval: config.ignore_health_on_host_removal,
  };
}

/** `envoy.clusters.dns` is both kinds of DNS cluster. A cluster that names no type is STATIC. */
function typeOf({ type, cluster_type: custom }: z.output<typeof cluster>): string {
  if (custom === undefined) return type ?? 'STATIC';
  if (custom.name !== 'envoy.clusters.dns') return custom.name;
  return custom.typed_config?.all_addresses_in_single_endpoint === true ? 'LOGICAL_DNS' : 'STRICT_DNS';
}

/** `7.500s` in ms. */
function durationMs(text: string | undefined): number | undefined {
  const seconds = text?.endsWith('s') === true ? Number(text.slice(0, -1)) : Number.NaN;
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

/** `1.40.0` of `9e558093…/1.40.0/Clean/RELEASE/BoringSSL`. */
export function shortVersion(version: string): string {
  return version.split('/')[1] ?? version;
}
