import { type Chain, chainsOf, isAttached, partsOf } from './chains.ts';
import type { HostFacts, ProxyConfig, ProxyFacts } from './facts.ts';
import { type JsonObject, textAt } from './json.ts';

/** One proxy as the checks see it: its facts, and what of ours was found in its config. */
export interface Proxy extends ProxyFacts {
  config: ProxyConfig;
  chains: readonly Chain[];
  /** Those with something of ours. */
  attached: readonly Chain[];
  /** The clusters that what is ours sends to. */
  ourClusters: readonly string[];
  /** `1.40.0`; absent: nothing says it. */
  version: string | undefined;
  /** How each cluster is called in the statistics. */
  statNames: ReadonlyMap<string, string>;
}

export function proxyOf(facts: ProxyFacts, config: ProxyConfig): Proxy {
  const chains = chainsOf(config);
  const ourClusters = new Set(chains.flatMap(partsOf).map(({ cluster }) => cluster));
  return {
    ...facts,
    config,
    chains,
    attached: chains.filter(isAttached),
    ourClusters: [...ourClusters].filter((name) => name !== ''),
    version: facts.serverVersion ?? config.version,
    statNames: new Map(config.clusters.map((cluster) => [textAt(cluster, 'name'), textAt(cluster, 'alt_stat_name')])),
  };
}

export function clusterNamed(proxy: Proxy, name: string): JsonObject | undefined {
  return proxy.config.clusters.find((cluster) => textAt(cluster, 'name') === name);
}

/** How a name of the config is written in statistics: there a `:` divides name and value. */
export function statName(name: string): string {
  return name.replaceAll(':', '_');
}

/** A counter or gauge of a cluster; `undefined`: it is not collected, or no statistics were given. */
export function clusterStat({ stats, statNames }: Proxy, cluster: string, stat: string): number | undefined {
  // Istio gives each cluster another name there, with a `;` at its end.
  return stats?.values.get(`cluster.${statName(statNames.get(cluster) || cluster)}.${stat}`);
}

/** The hosts of a cluster as `/clusters` has them; `undefined`: it was not given, or has no such cluster. */
export function hostsOf({ hosts }: Proxy, cluster: string): readonly HostFacts[] | undefined {
  return hosts?.get(cluster);
}

/** The addresses of a cluster's hosts, from `/clusters` or the config dump; empty: none, or none is known. */
export function addressesOf(proxy: Proxy, cluster: string): readonly string[] {
  const all = hostsOf(proxy, cluster)?.map(({ address }) => address) ?? proxy.config.endpoints.get(cluster) ?? [];
  return all.filter((address) => address !== '');
}

/** Whether a version is older than major.minor; not where it is unknown. */
export function isOlder(version: string | undefined, major: number, minor: number): boolean {
  if (version === undefined) return false;
  const [a = 0, b = 0] = version.split('.').map(Number);
  return a < major || (a === major && b < minor);
}
