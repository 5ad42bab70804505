import { parseIstioCluster } from '../../model/cluster-name.ts';

/** A Service of Kubernetes. */
export interface ServiceName {
  namespace: string;
  service: string;
}

/**
 * The Service behind a cluster: as the config says (`NAMESPACE/NAME`), else by its Istio name
 * (`outbound|80||cart.shop.svc.cluster.local`). `undefined`: it is none that slices tell of. A name of a whole set of
 * clusters (`svc.clusterset.local`) has endpoints in other clusters too.
 */
export function serviceOfCluster(cluster: string, configured: string | undefined): ServiceName | undefined {
  if (configured !== undefined) {
    const [namespace, service] = configured.split('/');
    return namespace && service ? { namespace, service } : undefined;
  }
  const istio = parseIstioCluster(cluster);
  if (istio === undefined || istio.direction === 'inbound') return undefined;
  const [service, namespace, kind, ...domain] = istio.fqdn?.toLowerCase().split('.') ?? [];
  if (kind !== 'svc' || !service || !namespace || service.includes('*')) return undefined;
  return domain.join('.') === 'clusterset.local' ? undefined : { namespace, service };
}
