import { type HttpChain, isAttachedHttp } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { isObject, objectAt, objectsAt, textAt } from '../json.ts';
import { addressesOf, type Proxy } from '../proxy.ts';
import { routesOf } from '../routes.ts';

/** Whether what is attached leads to Sidelight itself, and whether a route takes our filter away. */
export function checkRoutes(proxy: Proxy): ProxyFinding[] {
  return proxy.attached.filter(isAttachedHttp).flatMap((chain) => [...itself(proxy, chain), ...overrides(chain)]);
}

function itself(proxy: Proxy, chain: HttpChain): ProxyFinding[] {
  // A client's sidecar has a route to every service of the mesh; the calls of ext_proc itself pass no listener.
  if (chain.direction === 'outbound') return [];
  const hosts = new Set(proxy.ourClusters.flatMap((cluster) => addressesOf(proxy, cluster)));
  const clusters = routesOf(chain).flatMap((route) => route.clusters);
  const leading = clusters.find(
    (cluster) =>
      proxy.ourClusters.includes(cluster) || addressesOf(proxy, cluster).some((address) => hosts.has(address)),
  );
  const inbound = clusters.find((cluster) => isOwnPort(proxy, cluster, hosts));
  const found = leading ?? inbound;
  return found === undefined
    ? []
    : [
        finding('calls-itself', {
          where: chain.where,
          evidence: `routes lead to cluster ${found}, which is where ${proxy.ourClusters.join(', ')} leads: ${[...hosts].join(', ')}`,
        }),
      ];
}

/** A sidecar's inbound cluster has a port only; whose pod it is, its node id says: `sidecar~10.0.0.7~pod.namespace~…`. */
function isOwnPort({ config }: Proxy, cluster: string, hosts: ReadonlySet<string>): boolean {
  const port = /^inbound\|(\d+)\|/.exec(cluster)?.[1];
  const ip = config.nodeId.split('~')[1];
  return port !== undefined && ip !== undefined && hosts.has(`${ip}:${port}`);
}

function overrides(chain: HttpChain): ProxyFinding[] {
  const { extProcs, routes, where } = chain;
  const names = new Set(extProcs.map(({ filterName }) => filterName));
  const hosts = objectsAt(routes, 'virtual_hosts');
  const places = [routes, ...hosts, ...routesOf(chain).map(({ config }) => config)];
  const found = places.find((place) =>
    Object.entries(objectAt(place, 'typed_per_filter_config')).some(([name, one]) => names.has(name) && isObject(one)),
  );
  return findingIf(found !== undefined, 'route-switches-off', {
    where: `${where}, route ${textAt(found, 'name') || '(without a name)'}`,
    evidence: `typed_per_filter_config: ${Object.keys(objectAt(found, 'typed_per_filter_config')).join(', ')}`,
  });
}
