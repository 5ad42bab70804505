import { clusterStat, hostsOf, type Proxy } from './proxy.ts';

/** What a cluster has carried since its Envoy began. */
export interface Traffic {
  requests: number;
  connections: number;
}

/** `undefined`: nothing tells, which is not 0. */
export function trafficOf(proxy: Proxy, cluster: string): Traffic | undefined {
  const hosts = hostsOf(proxy, cluster);
  const sum = (stat: string) => hosts?.reduce((total, { stats }) => total + (stats.get(stat) ?? 0), 0);
  // Hosts that left take their counters with them; a mesh may not collect those of the cluster.
  const requests = greatest(clusterStat(proxy, cluster, 'upstream_rq_total'), sum('rq_total'));
  const connections = greatest(clusterStat(proxy, cluster, 'upstream_cx_total'), sum('cx_total'));
  if (requests === undefined && connections === undefined) return undefined;
  return { requests: requests ?? 0, connections: connections ?? 0 };
}

function greatest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

export function isUsed(traffic: Traffic | undefined): boolean {
  return traffic !== undefined && (traffic.requests > 0 || traffic.connections > 0);
}

export function trafficText(traffic: Traffic | undefined): string {
  if (traffic === undefined) return 'nothing tells how much';
  return `${counted(traffic.requests, 'request')}, ${counted(traffic.connections, 'connection')}`;
}

function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}
