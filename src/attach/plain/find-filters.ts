import { type Document, isMap, isSeq, type YAMLMap } from 'yaml';

/** A network filter whose traffic Sidelight can tell of. */
export type ConfigFilter =
  | { kind: 'http'; config: YAMLMap; routerIndex: number; router: YAMLMap }
  | { kind: 'tcp'; config: YAMLMap; router?: undefined; routerIndex?: undefined };

/** Those of the static listeners, or of the named ones. */
export function findFilters(
  document: Document,
  wanted: readonly string[],
): { filters: ConfigFilter[]; problems: string[] } {
  const listeners = items(document.getIn(['static_resources', 'listeners'], true));
  const names = listeners.map((listener) => textOf(listener.get('name')));
  const problems = wanted
    .filter((name) => !names.includes(name))
    .map(
      (name) => `--listener ${name}: expected one of ${names.join(', ') || 'none: static_resources has no listeners'}`,
    );
  const filters: ConfigFilter[] = [];
  for (const [index, listener] of listeners.entries()) {
    const name = names[index] ?? '';
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    for (const filter of networkFilters(listener)) {
      const found = configFilter(filter);
      if (found === 'no_router')
        problems.push(`listener ${name}: an HTTP connection manager without a router at its end`);
      else if (found !== undefined) filters.push(found);
    }
  }
  if (filters.length === 0 && problems.length === 0) problems.push(nothingToAttachTo);
  return { filters, problems };
}

const nothingToAttachTo =
  'static_resources.listeners: expected an HTTP connection manager or a TCP proxy; what a control plane sends is not in this file';

function networkFilters(listener: YAMLMap): YAMLMap[] {
  const chains = items(listener.get('filter_chains', true));
  const fallback = listener.get('default_filter_chain', true);
  if (isMap(fallback)) chains.push(fallback);
  return chains.flatMap((chain) => items(chain.get('filters', true)));
}

function configFilter(filter: YAMLMap): ConfigFilter | 'no_router' | undefined {
  const config = filter.get('typed_config', true);
  if (!isMap(config)) return undefined;
  const map = config as YAMLMap;
  switch (typeOf(map)) {
    case 'tcp_proxy.v3.TcpProxy':
      return { kind: 'tcp', config: map };
    case 'http_connection_manager.v3.HttpConnectionManager':
      return withRouter(map) ?? 'no_router';
    default:
      return undefined;
  }
}

function withRouter(config: YAMLMap): ConfigFilter | undefined {
  const routerIndex = items(config.get('http_filters', true)).findIndex((filter) => routerOf(filter) !== undefined);
  const filter = items(config.get('http_filters', true))[routerIndex];
  const router = filter && routerOf(filter);
  return router && { kind: 'http', config, routerIndex, router };
}

function routerOf(filter: YAMLMap): YAMLMap | undefined {
  const config = filter.get('typed_config', true);
  return isMap(config) && typeOf(config) === 'router.v3.Router' ? config : undefined;
}

/** `tcp_proxy.v3.TcpProxy`: the last three parts of a type's URL. */
function typeOf(config: YAMLMap): string {
  return textOf(config.get('@type')).split('.').slice(-3).join('.');
}

function items(list: unknown): YAMLMap[] {
  return isSeq(list) ? list.items.filter((item): item is YAMLMap => isMap(item)) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
