/** The parts of an Istio cluster name `direction|port|subset|fqdn`. */
export interface IstioCluster {
  /** `inbound-vip` is a waypoint's own name for the service behind it. */
  direction: 'inbound' | 'outbound' | 'inbound-vip';
  /** As written: a number, or the name that a waypoint puts there. */
  port: string;
  /** The subset of the DestinationRule, or the protocol on a waypoint; absent where empty. */
  subset: string | undefined;
  /** Absent for a sidecar's inbound clusters. */
  fqdn: string | undefined;
}

/** Parses a cluster name in Istio's form; `undefined`: it has another form. */
export function parseIstioCluster(name: string): IstioCluster | undefined {
  const [direction, port, subset, fqdn, ...more] = name.split('|');
  if (direction !== 'inbound' && direction !== 'outbound' && direction !== 'inbound-vip') return undefined;
  if (!port || subset === undefined || fqdn === undefined || more.length > 0) return undefined;
  return { direction, port, subset: subset || undefined, fqdn: fqdn || undefined };
}
