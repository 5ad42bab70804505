import type { HttpChain } from './chains.ts';
import { type JsonObject, listAt, objectAt, objectsAt, textAt } from './json.ts';

/** One route, with what it takes from its virtual host. */
export interface Route {
  name: string;
  virtualHost: JsonObject;
  /** Where it leads; empty: it answers by itself, or a header says. */
  clusters: readonly string[];
  /** Retries beside the first attempt; 0: none. */
  retries: number;
  config: JsonObject;
}

export function routesOf({ routes }: HttpChain): Route[] {
  return objectsAt(routes, 'virtual_hosts').flatMap((virtualHost) =>
    objectsAt(virtualHost, 'routes').map((config) => ({
      name: textAt(config, 'name'),
      virtualHost,
      clusters: clustersOf(config),
      retries: retriesOf(config['route'] === undefined ? {} : objectAt(config, 'route'), virtualHost),
      config,
    })),
  );
}

function clustersOf(route: JsonObject): string[] {
  const action = objectAt(route, 'route');
  const weighted = objectsAt(action, 'weighted_clusters', 'clusters').map((one) => textAt(one, 'name'));
  return [textAt(action, 'cluster'), ...weighted].filter((name) => name !== '');
}

function retriesOf(action: JsonObject, virtualHost: JsonObject): number {
  const own = objectAt(action, 'retry_policy');
  const policy = Object.keys(own).length > 0 ? own : objectAt(virtualHost, 'retry_policy');
  if (textAt(policy, 'retry_on') === '') return 0;
  // Envoy: one retry where the policy gives no number.
  return Number(policy['num_retries'] ?? 1);
}

/** How well a virtual host fits a host name; 0: not at all. Envoy takes the exact one, else the longest wildcard. */
export function fitOf(virtualHost: JsonObject, host: string): number {
  return Math.max(0, ...domainsOf(virtualHost).map((domain) => fitOfDomain(domain, host)));
}

/** In small letters. */
export function domainsOf(virtualHost: JsonObject): string[] {
  return listAt(virtualHost, 'domains').map((domain) => String(domain).toLowerCase());
}

function fitOfDomain(domain: string, host: string): number {
  if (domain === host || domain === host.replace(/:\d+$/, '')) return 1000;
  if (domain === '*') return 1;
  if (domain.startsWith('*') && host.endsWith(domain.slice(1))) return domain.length;
  return domain.endsWith('*') && host.startsWith(domain.slice(0, -1)) ? domain.length : 0;
}
