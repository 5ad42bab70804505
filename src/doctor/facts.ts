import type { JsonObject } from './json.ts';

/** What an Envoy is told to do: of `/config_dump`, or of a bootstrap file. */
export interface ProxyConfig {
  /** `''`: the node has none. */
  nodeId: string;
  /** `1.40.0`; absent: not said. */
  version: string | undefined;
  listeners: readonly JsonObject[];
  clusters: readonly JsonObject[];
  /** Route configurations that a listener refers to, by name. */
  routes: ReadonlyMap<string, JsonObject>;
  /** `ip:port` of the endpoints by cluster; absent: this dump does not say (`?include_eds`). */
  endpoints: ReadonlyMap<string, readonly string[]>;
  /** What Envoy refused of its last update, in its own words. */
  rejected: readonly { resource: string; details: string }[];
  /** Whether a control plane, or a mesh, adds to it what is not in here: what is missing may be there. */
  isPartial: boolean;
}

/** A host of a cluster, of `/clusters`. */
export interface HostFacts {
  address: string;
  healthy: boolean;
  stats: ReadonlyMap<string, number>;
}

/** Counters and gauges. */
export interface StatsFacts {
  values: ReadonlyMap<string, number>;
  /** Whether also what never moved is there: else what is absent may be 0 (`usedonly`). */
  isWhole: boolean;
}

/** What one proxy says about itself. What is absent was not given, or could not be read. */
export interface ProxyFacts {
  name: string;
  config?: ProxyConfig | undefined;
  stats?: StatsFacts | undefined;
  /** By cluster. */
  hosts?: ReadonlyMap<string, readonly HostFacts[]> | undefined;
  /** Runtime keys and their final values. */
  runtime?: ReadonlyMap<string, string> | undefined;
  /** Of `/server_info`: `1.40.0`. */
  serverVersion?: string | undefined;
  /** Why something is absent, where there is a reason: it was asked for, and did not come. */
  missing?: Partial<Record<FactKind, string>>;
}

/** A text, or why there is none. */
export type Read = { text: string } | { problem: string };

/** The kinds of facts, as the command line has them, with the admin interface's path of each. */
export const factPaths = {
  'config-dump': '/config_dump?include_eds',
  stats: '/stats',
  clusters: '/clusters?format=json',
  runtime: '/runtime',
  'server-info': '/server_info',
} as const;
export type FactKind = keyof typeof factPaths;
export const factKinds = Object.keys(factPaths) as FactKind[];
