import { type Document, isMap, type YAMLMap } from 'yaml';
import { type OwnNodes, ownNodes } from './own-nodes.ts';

/** A network filter whose traffic Sidelight can tell of. */
export type ConfigFilter =
  | { kind: 'http'; config: YAMLMap; routerIndex: number; router: YAMLMap }
  | { kind: 'tcp'; config: YAMLMap; router?: undefined; routerIndex?: undefined };

/** Those of the static listeners, or of the named ones. */
export function findFilters(
  document: Document,
  wanted: readonly string[],
): { filters: ConfigFilter[]; problems: string[] } {
  const own = ownNodes(document);
  const resources = document.get('static_resources', true);
  const listeners = isMap(resources) ? own.maps(resources, 'listeners') : [];
  const names = listeners.map(({ map }) => textOf(map.get('name')));
  const problems = wanted
    .filter((name) => !names.includes(name))
    .map((name) => `--listener ${name}: expected one of ${names.filter(Boolean).join(', ') || noNames}`);
  const filters: ConfigFilter[] = [];
  // Also those that are not wanted: what they have in common with one that is must not become ours with it.
  for (const [index, { map }] of listeners.entries()) {
    const name = names[index] ?? '';
    const found = networkFilters(map, own).map((filter) => configFilter(filter, own));
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    for (const filter of found)
      if (filter === 'no_router') problems.push(`listener ${name || `${index}, which has no name`}: ${noRouter}`);
      else if (filter !== undefined) filters.push(filter);
  }
  if (filters.length === 0 && problems.length === 0) problems.push(nothingToAttachTo);
  return { filters, problems };
}

const noNames = 'none: static_resources has no listeners with names';
const nothingToAttachTo =
  'static_resources.listeners: expected an HTTP connection manager or a TCP proxy; what a control plane sends is not in this file';
const noRouter =
  'an HTTP connection manager without a router in this file: expected a filter with the typed_config of one, which the log of attempts is put into; config_discovery and TypedStruct have no place for it';

function networkFilters(listener: YAMLMap, own: OwnNodes): YAMLMap[] {
  const chains = own.maps(listener, 'filter_chains').map(({ map }) => map);
  const fallback = own.child(listener, 'default_filter_chain');
  if (isMap(fallback)) chains.push(fallback);
  return chains.flatMap((chain) => own.maps(chain, 'filters').map(({ map }) => map));
}

function configFilter(filter: YAMLMap, own: OwnNodes): ConfigFilter | 'no_router' | undefined {
  const config = own.child(filter, 'typed_config');
  if (!isMap(config)) return undefined;
  for (const key of ['access_log', 'access_log_options', 'early_header_mutation_extensions']) own.child(config, key);
  switch (typeOf(config)) {
    case 'tcp_proxy.v3.TcpProxy':
      return { kind: 'tcp', config };
    case 'http_connection_manager.v3.HttpConnectionManager':
      return withRouter(config, own) ?? 'no_router';
    default:
      return undefined;
  }
}

function withRouter(config: YAMLMap, own: OwnNodes): ConfigFilter | undefined {
  for (const { map, index } of own.maps(config, 'http_filters')) {
    const router = own.child(map, 'typed_config');
    if (!isMap(router) || typeOf(router) !== 'router.v3.Router') continue;
    for (const key of ['upstream_log', 'upstream_log_options']) own.child(router, key);
    return { kind: 'http', config, routerIndex: index, router };
  }
  return undefined;
}

/** `tcp_proxy.v3.TcpProxy`: the last three parts of a type's URL. */
function typeOf(config: YAMLMap): string {
  return textOf(config.get('@type')).split('.').slice(-3).join('.');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
