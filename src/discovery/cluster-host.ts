import { canonicalIp } from '../lib/ip.ts';
import { parseIstioCluster } from '../model/cluster-name.ts';

/**
 * The DNS name behind a cluster, by its Istio name; `undefined`: DNS cannot tell its endpoints. The name of a
 * Kubernetes Service resolves to the Service's own IP, not to endpoints; a wildcard and an address are no names.
 * A waypoint asks DNS for an outside host as a sidecar does (STRICT_DNS; Istio 1.31, test/istio/names.test.ts).
 */
export function hostOfCluster(cluster: string): string | undefined {
  const istio = parseIstioCluster(cluster);
  if (istio?.fqdn === undefined || istio.direction === 'inbound') return undefined;
  const name = istio.fqdn.toLowerCase();
  const ofKubernetes = name.endsWith('.local') || name.endsWith('.svc') || name.includes('.svc.');
  return ofKubernetes || name.includes('*') || canonicalIp(name) !== undefined ? undefined : name;
}
