/** Why a connection stays with an endpoint that left. docs/reference/verdicts.md has the facts that lead to each. */
export const pinReasons = [
  /** `close_connections_on_host_set_change` is set: Envoy then closes no connection of a host that left. */
  'host_set_change',
  /** A LOGICAL_DNS pool keeps its connections: Envoy up to 1.38, or by runtime flag. */
  'logical_dns_pool',
  /** An HTTP pool keeps its connections, and the cluster's type is not known. */
  'pool_kept',
  /** The client keeps its TCP connection, and nothing ends it from outside. */
  'tcp_session',
  /** A request that began before is still under way. */
  'long_request',
  /** Envoy keeps a removed host until it fails its health check. */
  'health_check_hold',
  /** The proxy still lists the endpoint: its control plane or its resolver gives an old answer. */
  'old_proxy_list',
] as const;
export type PinReason = (typeof pinReasons)[number];

export interface Advice {
  reason: PinReason;
  /** What to change, the smallest first. */
  changes: readonly string[];
}
