import type { Pair, YAMLMap } from 'yaml';
import { blockMap, flowMap, remark } from '../nodes.ts';
import type { LogParts, Parts } from '../parts.ts';
import type { IstioPlan, IstioTarget } from '../plan.ts';

const managerName = 'envoy.filters.network.http_connection_manager';
const managerType = `type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`;
const routerName = 'envoy.filters.http.router';
const routerType = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';
const tcpProxyName = 'envoy.filters.network.tcp_proxy';
const tcpProxyType = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';

/** A waypoint's own clusters and listeners are those of an inbound side. */
const contexts = {
  'sidecar-outbound': 'SIDECAR_OUTBOUND',
  'sidecar-inbound': 'SIDECAR_INBOUND',
  waypoint: 'SIDECAR_INBOUND',
  gateway: 'GATEWAY',
} as const satisfies Record<IstioTarget, string>;

/** The patches of one EnvoyFilter, in the order in which they are to be applied. */
export function patches(parts: Parts, plan: IstioPlan): YAMLMap[] {
  const { logs } = parts;
  return [
    managerPatch(parts, plan),
    ...filterPatches(parts, plan),
    ...(logs ? [attemptLogPatch(logs, plan)] : []),
    ...(logs && plan.tcp ? [connectionLogPatch(logs, plan)] : []),
  ];
}

/** A cluster of ours beside those of the mesh. */
export function addCluster(cluster: YAMLMap, { target }: IstioPlan): YAMLMap {
  // A sidecar has one list of clusters for both sides.
  const context = target === 'sidecar-inbound' ? contexts['sidecar-outbound'] : contexts[target];
  return patch('CLUSTER', flowMap({ context }), 'ADD', cluster);
}

/** More for a cluster that the mesh made. */
export function mergeIntoCluster(bounds: YAMLMap, { target }: IstioPlan, name: string): YAMLMap {
  const context = target === 'gateway' ? contexts.gateway : contexts['sidecar-outbound'];
  return patch('CLUSTER', blockMap({ context, cluster: flowMap({ name }) }), 'MERGE', bounds);
}

/** Lists grow by a merge: what the mesh has there stays. */
function managerPatch({ earlyHeaderMutation, logs }: Parts, plan: IstioPlan): YAMLMap {
  const config = typedConfig(managerType, [earlyHeaderMutation, ...(logs ? [logs.request] : [])]);
  const match = filterMatch(plan, 'http', { name: managerName });
  return patch('NETWORK_FILTER', match, 'MERGE', blockMap({ typed_config: config }));
}

function filterPatches({ filters }: Parts, plan: IstioPlan): YAMLMap[] {
  return filters.map((filter, index) => {
    const inserted = patch('HTTP_FILTER', routerMatch(plan), 'INSERT_BEFORE', filter);
    if (index > 0) return inserted;
    filter.commentBefore = null;
    return remark(
      inserted,
      'The next three stand right before the router, in this order. Responses pass them from the last to the first: the',
      "last writes the upstream connection's id and age into the response, the tagger shows them to Sidelight, and the",
      'first takes them away again. The client never sees them, also when the service is down.',
    );
  });
}

function attemptLogPatch({ attempt, attemptOptions }: LogParts, plan: IstioPlan): YAMLMap {
  const config = typedConfig(routerType, [attemptOptions, attempt]);
  return patch('HTTP_FILTER', routerMatch(plan), 'MERGE', blockMap({ name: routerName, typed_config: config }));
}

function connectionLogPatch({ connection, connectionOptions }: LogParts, plan: IstioPlan): YAMLMap {
  const config = typedConfig(tcpProxyType, [connectionOptions, connection]);
  return remark(
    patch(
      'NETWORK_FILTER',
      filterMatch(plan, 'tcp', { name: tcpProxyName }),
      'MERGE',
      blockMap({ typed_config: config }),
    ),
    'TCP: what the proxy does not read as HTTP. Connected, every five seconds, and at the end.',
  );
}

function routerMatch(plan: IstioPlan): YAMLMap {
  return filterMatch(plan, 'http', { name: managerName, subFilter: flowMap({ name: routerName }) });
}

function filterMatch(
  { target, port, onlyService }: IstioPlan,
  protocol: 'http' | 'tcp',
  filter: Readonly<Record<string, unknown>>,
): YAMLMap {
  // A waypoint's chains are named so, those of gRPC and HTTP/2 ports `http` too.
  const chain = onlyService && `inbound-vip|${onlyService.port}|${protocol}|${onlyService.host}`;
  const listener = blockMap({
    // Its other listeners carry the tunnels, not the requests in them.
    name: target === 'waypoint' ? 'main_internal' : undefined,
    portNumber: port,
    filterChain: blockMap({ name: chain, filter: flowMap(filter) }),
  });
  return blockMap({ context: contexts[target], listener });
}

function typedConfig(type: string, pairs: readonly Pair[]): YAMLMap {
  const config = blockMap({ '@type': type });
  config.items.push(...pairs);
  return config;
}

function patch(applyTo: string, match: YAMLMap, operation: string, value: YAMLMap): YAMLMap {
  return blockMap({ applyTo, match, patch: blockMap({ operation, value }) });
}
