import type { Chain } from './chains.ts';
import { finding, type ProxyFinding } from './finding.ts';
import { objectsAt, textAt } from './json.ts';
import { addressesOf, type Proxy } from './proxy.ts';
import { domainsOf, fitOf, routesOf } from './routes.ts';
import { isUsed, type Traffic, trafficOf, trafficText } from './traffic.ts';

/** A cluster that traffic for a host may leave by. */
export interface HostCluster {
  proxy: string;
  cluster: string;
  /** What leads there: a route, a server name, or the cluster's own name. */
  by: string;
  /** Whether it is meant for this host: not by a catch-all alone, unless this proxy goes by no host. */
  isMeant: boolean;
  /** Absent: nothing tells. */
  traffic: Traffic | undefined;
}

/** Which clusters are meant for a host, or take whatever comes, and what they carried. */
export function clustersFor(proxy: Proxy, host: string): HostCluster[] {
  const isMeantForAny = !proxy.chains.some(asksHost);
  const led = proxy.chains.flatMap((chain) => byChain(chain, host));
  const found = [...byName(proxy, host), ...led.map((one) => ({ ...one, isMeant: one.isMeant || isMeantForAny }))];
  const groups = Map.groupBy(found, ({ cluster }) => cluster);
  return Array.from(groups, ([cluster, all]) => ({
    proxy: proxy.name,
    cluster,
    by: [...new Set(all.map(({ by }) => by))].join('; '),
    isMeant: all.some(({ isMeant }) => isMeant),
    traffic: trafficOf(proxy, cluster),
  }));
}

type Lead = Pick<HostCluster, 'cluster' | 'by' | 'isMeant'>;

function byName({ config }: Proxy, host: string): Lead[] {
  const bare = host.replace(/:\d+$/, '');
  return config.clusters.flatMap((cluster) => {
    const name = textAt(cluster, 'name');
    const addresses = objectsAt(cluster, 'load_assignment', 'endpoints')
      .flatMap((one) => objectsAt(one, 'lb_endpoints'))
      .map((one) => textAt(one, 'endpoint', 'address', 'socket_address', 'address').toLowerCase());
    const isIts = name.toLowerCase() === bare || name.toLowerCase().endsWith(`|${bare}`) || addresses.includes(bare);
    return isIts ? [{ cluster: name, by: 'its name or address', isMeant: true }] : [];
  });
}

function byChain(chain: Chain, host: string): Lead[] {
  if (chain.kind === 'tcp') {
    const isMeant = chain.serverNames.includes(host.replace(/:\d+$/, ''));
    const cluster = textAt(chain.proxy, 'cluster');
    return isMeant && cluster !== '' ? [{ cluster, by: `${chain.where}, server name`, isMeant }] : [];
  }
  const routes = routesOf(chain).map((route) => ({ route, fit: fitOf(route.virtualHost, host) }));
  const best = Math.max(0, ...routes.map(({ fit }) => fit));
  return routes
    .filter(({ fit }) => fit > 0 && fit === best)
    .flatMap(({ route, fit }) => {
      const by = `${chain.where}, virtual host ${textAt(route.virtualHost, 'name')}`;
      return route.clusters.map((cluster) => ({ cluster, by, isMeant: fit > 1 }));
    });
}

/** Whether a chain goes by the host at all. */
function asksHost(chain: Chain): boolean {
  if (chain.serverNames.length > 0) return true;
  const domains = chain.kind === 'tcp' ? [] : routesOf(chain).flatMap(({ virtualHost }) => domainsOf(virtualHost));
  return domains.some((domain) => domain !== '*');
}

/** Whether traffic for a host leaves by a cluster that it is not believed to use. */
export function checkHost(proxy: Proxy, host: string): ProxyFinding[] {
  const all = clustersFor(proxy, host);
  const meant = all.filter(({ isMeant }) => isMeant);
  if (meant.length === 0) {
    const others = all.map(({ cluster, by, traffic }) => `${cluster} (${by}): ${trafficText(traffic)}`);
    const evidence =
      others.length === 0 ? 'no virtual host, server name or cluster fits' : `only catch-alls: ${others.join('; ')}`;
    return [finding('host-unknown', { where: `host ${host}`, evidence })];
  }
  return meant
    .filter(({ traffic }) => traffic !== undefined && !isUsed(traffic))
    .flatMap((one) => elsewhere(proxy, one, all, host));
}

/** Clusters with traffic that lead to the same endpoints, or take whatever comes. */
function elsewhere(proxy: Proxy, idle: HostCluster, all: readonly HostCluster[], host: string): ProxyFinding[] {
  const own = new Set(addressesOf(proxy, idle.cluster));
  const names = proxy.config.clusters.map((cluster) => textAt(cluster, 'name'));
  const same = names.filter((name) => addressesOf(proxy, name).some((address) => own.has(address)));
  // A name that resolves to the address of another service (a ClusterIP): that one's listener has the connection.
  const caught = proxy.chains.filter(({ address }) => own.has(address)).flatMap(clustersOf);
  const leads = all.filter(({ isMeant }) => !isMeant).map(({ cluster }) => cluster);
  const used = [...new Set([...same, ...caught, ...leads])].filter(
    (name) => name !== idle.cluster && !proxy.ourClusters.includes(name) && isUsed(trafficOf(proxy, name)),
  );
  if (used.length === 0) return [];
  const texts = used.map((name) => {
    const why = whyOf(same.includes(name), caught.includes(name));
    return `${name} (${why}) has ${trafficText(trafficOf(proxy, name))}${placesOf(proxy, name)}`;
  });
  return [
    finding('traffic-elsewhere', {
      where: `host ${host}, cluster ${idle.cluster}`,
      evidence: `${idle.cluster} has 0 requests; ${texts.join('; ')}`,
    }),
  ];
}

function whyOf(isSame: boolean, isCaught: boolean): string {
  if (isSame) return 'the same endpoint';
  return isCaught ? 'its listener has that address' : 'takes whatever comes';
}

function clustersOf(chain: Chain): string[] {
  return chain.kind === 'tcp' ? [textAt(chain.proxy, 'cluster')] : routesOf(chain).flatMap(({ clusters }) => clusters);
}

/** Which listeners lead to a cluster. */
function placesOf({ chains }: Proxy, cluster: string): string {
  const places = chains.filter((chain) => clustersOf(chain).includes(cluster));
  return places.length === 0 ? '' : `, by ${places.map(({ where }) => where).join(', ')}`;
}
