import { addressText } from '../address.ts';
import type { ProxyConfig } from '../facts.ts';
import { at, isObject, type JsonObject, objectAt, objectsAt, snakeCase, textAt, typeOf } from '../json.ts';

/** Reads what `/config_dump` answers; `undefined`: it is none. */
export function readConfigDump(value: unknown): ProxyConfig | undefined {
  if (!isObject(value) || !Array.isArray(value['configs'])) return undefined;
  const dump = snakeCase(value);
  const section = (type: string) => objectsAt(dump, 'configs').find((one) => typeOf(one) === type) ?? {};
  const [listeners, clusters, routes] = [
    section('ListenersConfigDump'),
    section('ClustersConfigDump'),
    section('RoutesConfigDump'),
  ];
  const node = objectAt(section('BootstrapConfigDump'), 'bootstrap', 'node');
  return {
    nodeId: textAt(node, 'id'),
    version: versionOf(node),
    listeners: [
      ...objectsAt(listeners, 'static_listeners').map((one) => objectAt(one, 'listener')),
      ...objectsAt(listeners, 'dynamic_listeners').flatMap(activeListener),
    ],
    clusters: [...objectsAt(clusters, 'static_clusters'), ...objectsAt(clusters, 'dynamic_active_clusters')].map(
      (one) => objectAt(one, 'cluster'),
    ),
    routes: new Map(
      [...objectsAt(routes, 'static_route_configs'), ...objectsAt(routes, 'dynamic_route_configs')].map((one) => {
        const config = objectAt(one, 'route_config');
        return [textAt(config, 'name'), config];
      }),
    ),
    endpoints: endpointsOf(section('EndpointsConfigDump')),
    rejected: [
      ...objectsAt(listeners, 'dynamic_listeners').flatMap((one) => errorState('listener', textAt(one, 'name'), one)),
      ...[
        ...objectsAt(clusters, 'dynamic_active_clusters'),
        ...objectsAt(clusters, 'dynamic_warming_clusters'),
      ].flatMap((one) => errorState('cluster', textAt(one, 'cluster', 'name'), one)),
    ],
    isPartial: false,
  };
}

/** What a bootstrap file says; the listeners and clusters that a control plane adds are not in it. */
export function readBootstrap(value: unknown): ProxyConfig | undefined {
  if (!isObject(value)) return undefined;
  const bootstrap = snakeCase(value);
  if (!isObject(at(bootstrap, 'static_resources'))) return undefined;
  const clusters = objectsAt(bootstrap, 'static_resources', 'clusters');
  return {
    nodeId: textAt(bootstrap, 'node', 'id'),
    version: undefined,
    listeners: objectsAt(bootstrap, 'static_resources', 'listeners'),
    clusters,
    routes: new Map(),
    endpoints: new Map(
      clusters.map((cluster) => [textAt(cluster, 'name'), addressesOf(objectAt(cluster, 'load_assignment'))]),
    ),
    rejected: [],
    isPartial: isObject(at(bootstrap, 'dynamic_resources')),
  };
}

function activeListener(dynamic: JsonObject): JsonObject[] {
  const listener = at(dynamic, 'active_state', 'listener') ?? at(dynamic, 'warming_state', 'listener');
  return isObject(listener) ? [listener] : [];
}

/** Envoy tells a refused listener twice: the second time its name is in what was refused alone. */
function errorState(
  kind: string,
  name: string,
  { error_state: state }: JsonObject,
): { resource: string; details: string }[] {
  const details = textAt(state, 'details');
  const resource = `${kind} ${name || textAt(state, 'failed_configuration', 'name')}`;
  return details === '' ? [] : [{ resource, details }];
}

function versionOf(node: JsonObject): string | undefined {
  const version = objectAt(node, 'user_agent_build_version', 'version');
  const part = (name: string) => Number(version[name] ?? 0);
  const major = part('major_number');
  return major === 0 ? undefined : `${major}.${part('minor_number')}.${part('patch')}`;
}

function endpointsOf(dump: JsonObject): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const one of [...objectsAt(dump, 'static_endpoint_configs'), ...objectsAt(dump, 'dynamic_endpoint_configs')]) {
    const assignment = objectAt(one, 'endpoint_config');
    found.set(textAt(assignment, 'cluster_name'), addressesOf(assignment));
  }
  return found;
}

function addressesOf(assignment: JsonObject): string[] {
  const hosts = objectsAt(assignment, 'endpoints').flatMap((one) => objectsAt(one, 'lb_endpoints'));
  return hosts.map((host) => addressText(at(host, 'endpoint', 'address')));
}
