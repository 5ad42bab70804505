import { parseIstioCluster } from '../../model/cluster-name.ts';
import { attribute as a, type SpanFacts } from '../attributes.ts';

/**
 * A cluster, and the service behind it where its name tells: a sidecar and a waypoint have clusters of other names for the
 * same service, and each subset has one of its own.
 */
export function clusterAttributes(cluster: string | undefined): SpanFacts {
  const istio = cluster === undefined ? undefined : parseIstioCluster(cluster);
  return { [a.cluster]: cluster, 'sidelight.cluster.host': istio?.fqdn, 'sidelight.cluster.subset': istio?.subset };
}
