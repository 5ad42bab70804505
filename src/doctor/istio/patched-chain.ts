import type { ProxyConfig } from '../facts.ts';
import { type JsonObject, objectAt, objectsAt, textAt, typeOf } from '../json.ts';
import { type EnvoyFilter, isInListener, type Patch } from './envoy-filter.ts';

/** What the patches of all EnvoyFilters make of a listener of one context, as far as it is theirs. */
export interface PatchedChain {
  config: ProxyConfig;
  /** How a finding says where it is: a place in `config` to words. */
  placeOf: (where: string) => string;
}

/** One for each context that is patched. They are taken to reach the same proxies. */
export function patchedChains(filters: readonly EnvoyFilter[]): PatchedChain[] {
  const patches = filters.toSorted((a, b) => a.priority - b.priority).flatMap((filter) => filter.patches);
  const named = patches.filter(isInListener).map(({ context }) => context);
  const certain = [...new Set(named.filter((context) => context !== 'ANY'))];
  const contexts = certain.length === 0 && named.length > 0 ? ['ANY'] : certain;
  return contexts.map((context) => {
    const own = patches.filter((patch) => patch.context === context || patch.context === 'ANY');
    const placeOf = (where: string) =>
      where.replace('listener patched, filter chain 0', `patches with context ${context}`);
    return { config: configOf(own), placeOf };
  });
}

function configOf(patches: readonly Patch[]): ProxyConfig {
  const hcm = {
    '@type': 'HttpConnectionManager',
    ...hcmOf(patches),
    http_filters: filtersOf(patches),
  };
  const clusters = patches.filter(({ applyTo, operation }) => applyTo === 'CLUSTER' && operation === 'ADD');
  return {
    nodeId: '',
    version: undefined,
    listeners: [{ name: 'patched', filter_chains: [{ filters: [{ typed_config: hcm }, ...tcpOf(patches)] }] }],
    clusters: clusters.map(({ value }) => value),
    routes: new Map(),
    endpoints: new Map(),
    rejected: [],
    isPartial: true,
  };
}

function networkConfigs(patches: readonly Patch[], type: string): JsonObject[] {
  const all = patches.filter(({ applyTo }) => applyTo === 'NETWORK_FILTER');
  return all.map(({ value }) => objectAt(value, 'typed_config')).filter((config) => typeOf(config) === type);
}

/** Lists append in a MERGE. */
function hcmOf(patches: readonly Patch[]): JsonObject {
  const all = networkConfigs(patches, 'HttpConnectionManager');
  const list = (field: string) => all.flatMap((config) => objectsAt(config, field));
  return {
    access_log: list('access_log'),
    early_header_mutation_extensions: list('early_header_mutation_extensions'),
  };
}

function tcpOf(patches: readonly Patch[]): JsonObject[] {
  return networkConfigs(patches, 'TcpProxy').map((config) => ({ typed_config: config }));
}

/** Inserted before the router in this order; the router last, with what is merged into it. */
function filtersOf(patches: readonly Patch[]): JsonObject[] {
  const http = patches.filter(({ applyTo }) => applyTo === 'HTTP_FILTER');
  const isRouter = ({ value }: Patch) => typeOf(value['typed_config']) === 'Router';
  const first = http.filter(({ operation }) => operation === 'INSERT_FIRST').toReversed();
  const rest = http.filter((patch) => patch.operation !== 'INSERT_FIRST' && !isRouter(patch));
  const routers = http.filter(isRouter).map(({ value }) => objectAt(value, 'typed_config'));
  const options = routers.map((router) => objectAt(router, 'upstream_log_options'));
  const router = {
    '@type': 'Router',
    upstream_log: routers.flatMap((one) => objectsAt(one, 'upstream_log')),
    upstream_log_options: Object.assign({}, ...options) as JsonObject,
  };
  const name = routers.length === 0 ? '' : textAt(http.find(isRouter)?.value, 'name');
  return [...[...first, ...rest].map(({ value }) => value), { name, typed_config: router }];
}
