import { addressText } from './address.ts';
import type { ProxyConfig } from './facts.ts';
import { findTyped, type JsonObject, listAt, objectAt, objectsAt, textAt, typeOf } from './json.ts';
import {
  type ExtProcPart,
  extProcsOf,
  type LogPart,
  logsOf,
  type MutationPart,
  mutationsOf,
  type Suspicion,
} from './parts.ts';

/** Whose requests a listener takes, as Istio says it; plain Envoys do not say. */
export type Direction = 'inbound' | 'outbound' | 'unspecified';

interface Place {
  listener: string;
  direction: Direction;
  /** `listener http, filter chain 0` */
  where: string;
  /** What the listener is bound to, `ip:port`; `''`: not to an address. */
  address: string;
  /** Of TLS that it takes; empty: it does not go by that. */
  serverNames: readonly string[];
}

/** One HTTP connection manager, with what of ours is in it. */
export interface HttpChain extends Place {
  kind: 'http';
  statPrefix: string;
  filters: readonly JsonObject[];
  routes: JsonObject;
  router: JsonObject;
  extProcs: readonly ExtProcPart[];
  logs: readonly LogPart[];
  /** Request headers set before any filter. */
  early: readonly MutationPart[];
  /** Request headers set by filters. */
  late: readonly MutationPart[];
  /** Response headers set and removed by filters. */
  added: readonly MutationPart[];
  removed: readonly MutationPart[];
}

/** One TCP proxy. */
export interface TcpChain extends Place {
  kind: 'tcp';
  proxy: JsonObject;
  logs: readonly LogPart[];
}

export type Chain = HttpChain | TcpChain;

/** Every HTTP connection manager and TCP proxy of a proxy, in the order of its listeners. */
export function chainsOf(config: ProxyConfig): Chain[] {
  const certain = chainsWith(config, () => false);
  const clusters = new Set(certain.flatMap(partsOf).map(({ cluster }) => cluster));
  // What leads to the same cluster, or is called after us, is ours too: it may be the slip that is looked for.
  return chainsWith(config, ({ name, cluster }) => clusters.has(cluster) || /sidelight/i.test(`${name} ${cluster}`));
}

/** What of ours sends to a cluster. */
export function partsOf(chain: Chain): { cluster: string }[] {
  return chain.kind === 'http' ? [...chain.extProcs, ...chain.logs] : [...chain.logs];
}

export function isAttached(chain: Chain): boolean {
  return partsOf(chain).length > 0;
}

export function isAttachedHttp(chain: Chain): chain is HttpChain {
  return chain.kind === 'http' && isAttached(chain);
}

function chainsWith(config: ProxyConfig, isSuspect: Suspicion): Chain[] {
  return config.listeners.flatMap((listener) => {
    const fallback = listener['default_filter_chain'] === undefined ? [] : [objectAt(listener, 'default_filter_chain')];
    const chains = [...objectsAt(listener, 'filter_chains'), ...fallback];
    return chains.flatMap((chain, index) => {
      const name = textAt(listener, 'name');
      const address = addressText(listener['address']);
      const label = textAt(chain, 'name');
      const where = `listener ${name}, filter chain ${index}${label === '' ? '' : ` (${label})`}`;
      const names = listAt(chain, 'filter_chain_match', 'server_names').filter((one) => typeof one === 'string');
      const place: Place = { listener: name, direction: directionOf(listener), where, address, serverNames: names };
      return objectsAt(chain, 'filters').flatMap((filter) => chainOf(filter, place, config, isSuspect));
    });
  });
}

function directionOf(listener: JsonObject): Direction {
  const direction = textAt(listener, 'traffic_direction');
  if (direction === 'INBOUND') return 'inbound';
  return direction === 'OUTBOUND' ? 'outbound' : 'unspecified';
}

function chainOf(filter: JsonObject, place: Place, config: ProxyConfig, isSuspect: Suspicion): Chain[] {
  const typed = objectAt(filter, 'typed_config');
  switch (typeOf(typed)) {
    case 'HttpConnectionManager':
      return [httpChainOf(typed, place, config, isSuspect)];
    case 'TcpProxy':
      return [{ ...place, kind: 'tcp', proxy: typed, logs: logsOf(objectsAt(typed, 'access_log'), 'tcp', isSuspect) }];
    default:
      return [];
  }
}

function httpChainOf(hcm: JsonObject, place: Place, config: ProxyConfig, isSuspect: Suspicion): HttpChain {
  const filters = objectsAt(hcm, 'http_filters');
  const router = objectAt(
    filters.find((filter) => typeOf(filter['typed_config']) === 'Router'),
    'typed_config',
  );
  const mutations = filters.flatMap((filter, position) =>
    findTyped(filter['typed_config'], 'HeaderMutation').map((found) => mutationsOf(found, position)),
  );
  const early = objectsAt(hcm, 'early_header_mutation_extensions').map((one) =>
    mutationsOf(objectAt(one, 'typed_config'), -1),
  );
  const named = textAt(hcm, 'rds', 'route_config_name');
  return {
    ...place,
    kind: 'http',
    statPrefix: textAt(hcm, 'stat_prefix'),
    filters,
    routes: named === '' ? objectAt(hcm, 'route_config') : (config.routes.get(named) ?? {}),
    router,
    extProcs: filters.flatMap((filter, position) => extProcsOf(filter, position, isSuspect)),
    logs: [
      ...logsOf(objectsAt(hcm, 'access_log'), 'request', isSuspect),
      ...logsOf(objectsAt(router, 'upstream_log'), 'attempt', isSuspect),
    ],
    early: early.flatMap(({ requestSets }) => requestSets),
    late: mutations.flatMap(({ requestSets }) => requestSets),
    added: mutations.flatMap(({ sets }) => sets),
    removed: mutations.flatMap(({ removes }) => removes),
  };
}
