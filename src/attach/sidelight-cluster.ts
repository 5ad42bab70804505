import { isIP } from 'node:net';
import type { Node, YAMLMap } from 'yaml';
import { blockMap, blockSeq, childMap, childSeq, flowMap, mapOf, pairOf, remark } from './nodes.ts';
import type { Reached } from './parts.ts';
import type { AttachPlan, SidelightPlace } from './plan.ts';

/** The cluster's name where it is ours to choose. */
export const ownClusterName = 'sidelight';

/** Health checks that one replica is to answer a second, all proxies together; each costs about as much as a tag. */
const checksPerSecond = 250;
/** Where checks are seldom one that fails puts a replica out: it may take so long, s. A second one would come late. */
const seldomTimeoutSeconds = 1;
/** And while it is out it is checked this often, s: what one late answer costs is a few seconds without tags. */
const outSeconds = 5;
/** Envoy asks for a name this often by itself, s; with many proxies as seldom as it checks. */
const dnsSeconds = 5;

/**
 * How the parts call Sidelight. Envoy's gRPC client takes the cluster's name for the authority, and Node refuses a request
 * whose authority has a bar: nothing would arrive. test/unit/ingress-authority.test.ts.
 */
export function reached(place: SidelightPlace): Reached {
  if (place.kind !== 'service') return { cluster: ownClusterName, authority: undefined };
  const host = serviceHost(place);
  return { cluster: `outbound|${place.port}||${host}`, authority: host };
}

/** The name of a Service in its cluster. */
export function serviceHost({ name, namespace }: Extract<SidelightPlace, { kind: 'service' }>): string {
  return `${name}.${namespace}.svc.cluster.local`;
}

/** How long a replica that hangs can cost requests their wait, s. */
export function frozenSeconds(proxies: number): number {
  return checkSeconds(proxies) + seldomTimeoutSeconds;
}

/** How often a proxy checks each replica, s. */
function checkSeconds(proxies: number): number {
  return Math.max(1, Math.ceil(proxies / checksPerSecond));
}

/** The shipped cluster as the plan wants it, changed in place. */
export function plannedCluster(cluster: YAMLMap, plan: AttachPlan): YAMLMap {
  setHealthCheck(cluster, plan, reached(plan.place).authority);
  if (plan.place.kind === 'service') return cluster;
  const byName = plan.place.kind === 'address' && isIP(plan.place.host) === 0;
  remark(cluster, ...(byName ? replicasRemark : ['Sidelight itself.']));
  cluster.set('type', byName ? 'STRICT_DNS' : 'STATIC');
  const seconds = checkSeconds(plan.proxies);
  if (byName && seconds > dnsSeconds) cluster.set('dns_refresh_rate', `${seconds}s`);
  const endpoint = flowMap({ endpoint: flowMap({ address: addressOf(plan.place) }) });
  childMap(cluster, 'load_assignment').set('endpoints', blockSeq([blockMap({ lb_endpoints: blockSeq([endpoint]) })]));
  return cluster;
}

const replicasRemark = [
  'Sidelight itself: one address for each replica, if the name is that of a headless Service. The service ends each log',
  'stream that is in use after some minutes, and Envoy then opens it anew on any of them.',
];

/** What of it a patch may add to a cluster that the mesh made. */
export function boundsOf(cluster: YAMLMap): YAMLMap {
  const kept = ['typed_extension_protocol_options', 'health_checks', 'common_lb_config'];
  cluster.commentBefore = null;
  cluster.items = cluster.items.filter(({ key }) => kept.includes(String(key)));
  return cluster;
}

function setHealthCheck(cluster: YAMLMap, { proxies }: AttachPlan, authority: string | undefined): void {
  const check = mapOf(childSeq(cluster, 'health_checks').get(0, true));
  if (authority !== undefined) check.set('grpc_health_check', flowMap({ authority }));
  const seconds = checkSeconds(proxies);
  if (seconds === 1) return;
  check.set('interval', `${seconds}s`);
  check.set('no_traffic_interval', `${seconds}s`);
  check.set('timeout', `${seldomTimeoutSeconds}s`);
  check.set('unhealthy_threshold', 1);
  check.set('unhealthy_interval', `${Math.min(seconds, outSeconds)}s`);
  remark(
    pairOf(cluster, 'health_checks').key as Node,
    `A service that hangs is out after ${frozenSeconds(proxies)} s at most; nothing is sent to it until it answers again. Seldom enough for`,
    `${proxies} proxies: each replica answers ${Math.round(proxies / seconds)} checks a second.`,
  );
}

function addressOf(place: Exclude<SidelightPlace, { kind: 'service' }>): YAMLMap {
  if (place.kind === 'uds') return flowMap({ pipe: flowMap({ path: place.path }) });
  return flowMap({ socket_address: flowMap({ address: place.host, port_value: place.port }) });
}
