/** The parts of the name that Istio gives to a cluster of a service. docs/istio-names.md has every form. */
export interface IstioCluster {
  /** `inbound-vip` is a waypoint's own name for the service behind it. */
  direction: 'inbound' | 'outbound' | 'inbound-vip';
  /** As written: a number. */
  port: string;
  /** What a waypoint takes the port's traffic for, `http` or `tcp`; absent elsewhere. */
  protocol: string | undefined;
  /** The subset of the DestinationRule; absent where the cluster is the whole service. */
  subset: string | undefined;
  /** The service's host name; absent for a sidecar's inbound clusters. */
  fqdn: string | undefined;
}

/** Parses a cluster name in Istio's form; `undefined`: it has another form. */
export function parseIstioCluster(name: string): IstioCluster | undefined {
  // Gateways that pass TLS on by its server name (`sni-dnat`) write `outbound_.443_.v2_.host`.
  const separator = name.startsWith('outbound_.') ? '_.' : '|';
  const [direction, port, subset, fqdn, ...more] = name.split(separator);
  if (direction !== 'inbound' && direction !== 'outbound' && direction !== 'inbound-vip') return undefined;
  if (!port || subset === undefined || fqdn === undefined || more.length > 0) return undefined;
  const host: Pick<IstioCluster, 'direction' | 'port' | 'fqdn'> = { direction, port, fqdn: fqdn || undefined };
  if (direction !== 'inbound-vip') return { ...host, protocol: undefined, subset: subset || undefined };
  // `http`, or with a subset `http/v2`. Istio 1.31, test/istio/names.test.ts.
  const [protocol, ofRule] = subset.split('/', 2);
  return { ...host, protocol: protocol || undefined, subset: ofRule || undefined };
}

/** Whether a sidecar's cluster is of its way in: to its own workload, known to Istio (`inbound|8080||`) or not. */
export function isInboundCluster(name: string): boolean {
  return name.startsWith('inbound|') || name.startsWith('InboundPassthroughCluster');
}
