import { ipWithPort } from '../lib/ip.ts';
import type { Advice, PinReason } from '../model/advice.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import { hasLeft, type PinVerdict } from '../model/verdict.ts';
import type { ProxyView } from '../model/view.ts';

/**
 * What ends each kind of pin, the smallest change first. Each was tried on a real Envoy, 1.37 to 1.40, as was what does
 * not: `close_connections_on_host_set_change` ends neither a TCP session nor a LOGICAL_DNS pool, and without it
 * STRICT_DNS closes what it keeps open. test/e2e/remedies.test.ts.
 */
const changes: Record<PinReason, readonly string[]> = {
  logical_dns_pool: [
    'runtime flag envoy.reloadable_features.enable_new_dns_implementation: true (the default from Envoy 1.39)',
    'the cluster as STRICT_DNS (Istio: ServiceEntry resolution DNS)',
    'common_http_protocol_options.max_connection_duration on the cluster',
  ],
  host_set_change: [
    'take common_lb_config.close_connections_on_host_set_change off the cluster: with it Envoy keeps the idle connections of a host that left',
  ],
  pool_kept: [
    'if the cluster is LOGICAL_DNS: STRICT_DNS, or Envoy 1.39',
    'common_http_protocol_options.max_connection_duration on the cluster',
  ],
  tcp_session: [
    "the application's or server's own connection lifetime (a pool's maximum age, a keep-alive timeout)",
    'max_downstream_connection_duration on the TCP proxy',
    'a health check with close_connections_on_host_health_failure: true on the cluster, which ends it when the old server stops',
  ],
  long_request: ['wait for its end, or bound it: max_stream_duration on the route'],
  health_check_hold: ['ignore_health_on_host_removal: true on the cluster'],
  old_proxy_list: ["the proxy's own list is old: look at its control plane (istioctl proxy-status) or at its resolver"],
};

/** Why a connection stays with an endpoint that left, and what to change; `undefined`: it does not, or just drains. */
export function adviseOn(
  { layer, underWay, peer }: Pick<UpstreamConnection, 'layer' | 'underWay' | 'peer'>,
  { pin }: PinVerdict,
  proxy: ProxyView | undefined,
): Advice | undefined {
  if (!hasLeft(pin)) return undefined;
  const host =
    peer.ip === undefined || peer.port === undefined ? undefined : proxy?.hosts.get(ipWithPort(peer.ip, peer.port));
  const reason = reasonOf({ isTcp: layer === 'tcp', isUnderWay: underWay.size > 0, pin, proxy, host });
  return reason === undefined ? undefined : { reason, changes: changes[reason] };
}

interface Facts {
  isTcp: boolean;
  isUnderWay: boolean;
  pin: PinVerdict['pin'];
  proxy: ProxyView | undefined;
  /** The endpoint in the proxy's own list. */
  host: { pendingRemoval: boolean } | undefined;
}

/** First match wins; docs/reference/verdicts.md has the table. */
function reasonOf({ isTcp, isUnderWay, pin, proxy, host }: Facts): PinReason | undefined {
  if (host?.pendingRemoval === true) return 'health_check_hold';
  if (host !== undefined || pin === 'stale_view') return 'old_proxy_list';
  if (isTcp) return 'tcp_session';
  if (isUnderWay && pin === 'draining') return 'long_request';
  if (pin === 'draining') return undefined;
  if (proxy?.type === 'LOGICAL_DNS') return 'logical_dns_pool';
  return proxy?.closesOnHostSetChange === true ? 'host_set_change' : 'pool_kept';
}
