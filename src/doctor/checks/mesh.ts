import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { isTrueAt, textAt } from '../json.ts';
import { clusterStat, hostsOf, isOlder, type Proxy } from '../proxy.ts';
import { routesOf } from '../routes.ts';
import { isUsed, trafficOf } from '../traffic.ts';

/** The traps of the mesh itself, whatever of ours is attached. */
export function checkMesh(proxy: Proxy): ProxyFinding[] {
  return [...retryStats(proxy), ...notRetried(proxy), ...dnsPins(proxy)];
}

const mostNames = 5;

function nameList(names: readonly string[]): string {
  const more = names.length > mostNames ? ` and ${names.length - mostNames} more` : '';
  return `${names.slice(0, mostNames).join(', ')}${more}`;
}

/** Absent is not 0: Istio's default statistics leave them out. */
function retryStats(proxy: Proxy): ProxyFinding[] {
  const names = proxy.config.clusters.map((cluster) => textAt(cluster, 'name'));
  const used = names.filter((name) => !proxy.ourClusters.includes(name) && isUsed(trafficOf(proxy, name)));
  const without = used.filter((name) => clusterStat(proxy, name, 'upstream_rq_retry') === undefined);
  return findingIf(proxy.stats?.isWhole === true && without.length > 0, 'retry-stats-absent', {
    where: `cluster ${nameList(without)}`,
    evidence: 'there is traffic, and no upstream_rq_retry',
  });
}

/** A refused connect can be repeated without harm; that nothing does is seen by every client. */
function notRetried(proxy: Proxy): ProxyFinding[] {
  return proxy.chains.flatMap((chain) => {
    if (chain.kind !== 'http') return [];
    const routes = routesOf(chain).filter(({ retries }) => retries === 0);
    const clusters = new Set(routes.flatMap((route) => route.clusters));
    return [...clusters].flatMap((cluster) => {
      const failing = (hostsOf(proxy, cluster) ?? []).filter(({ stats }) => (stats.get('cx_connect_fail') ?? 0) > 0);
      return findingIf(failing.length > 0 && !proxy.ourClusters.includes(cluster), 'failures-not-retried', {
        where: chain.where,
        evidence: `cluster ${cluster}: cx_connect_fail: ${nameList(failing.map(({ address, stats }) => `${address} ${stats.get('cx_connect_fail')}`))}; no retry_policy on its route`,
      });
    });
  });
}

const newDns = 'envoy.reloadable_features.enable_new_dns_implementation';

/** docs/decisions/0003: Envoy up to 1.38, and later ones with the flag off, keep the connections of LOGICAL_DNS. */
function dnsPins({ config, version, runtime }: Proxy): ProxyFinding[] {
  const flag = runtime?.get(newDns);
  const pins = flag === 'false' || (isOlder(version, 1, 39) && flag !== 'true');
  const clusters = config.clusters.filter((cluster) => {
    const dns = cluster['cluster_type'];
    const isOne = isTrueAt(dns, 'typed_config', 'all_addresses_in_single_endpoint');
    return textAt(cluster, 'type') === 'LOGICAL_DNS' || textAt(dns, 'name').endsWith('logical_dns') || isOne;
  });
  return pins
    ? clusters.map((cluster) =>
        finding('dns-pins', {
          where: `cluster ${textAt(cluster, 'name')}`,
          evidence: `LOGICAL_DNS, Envoy ${version ?? 'of unknown version'}, ${newDns}: ${flag ?? 'not set'}`,
        }),
      )
    : [];
}
