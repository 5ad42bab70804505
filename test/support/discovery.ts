import type { EndpointChange } from '../../src/discovery/change.ts';
import { Discovery, type DiscoveryOptions } from '../../src/discovery/discovery.ts';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import type { SidelightError } from '../../src/lib/errors.ts';

export type DnsOptions = NonNullable<DiscoveryOptions['dns']>;

/** What the config says of a cluster that it does not name. */
export const noRule = { host: undefined, service: undefined, graceMs: undefined, windowMs: 0 };

/** DNS by these servers, asked often. */
export function dnsOptions(servers: readonly string[], change: Partial<DnsOptions> = {}): DnsOptions {
  return {
    servers,
    ask: 'first',
    sameResolverAsProxy: true,
    refreshMs: 500,
    timeoutMs: 200,
    staleAfterMs: 60_000,
    maxHosts: 10,
    ...change,
  };
}

/** A discovery without any source but those given, stopped at the end, and what it told. */
export function discovering(cleanup: Cleanup, given: Partial<DiscoveryOptions>) {
  const changes: EndpointChange[] = [];
  const errors: SidelightError[] = [];
  const discovery = new Discovery({
    kubernetes: undefined,
    dns: undefined,
    file: undefined,
    envoyAdmin: { urls: [], refreshMs: 500, timeoutMs: 500, staleAfterMs: 60_000 },
    maxClusters: 10,
    maxLeftPerCluster: 10,
    rule: () => noRule,
    restored: [],
    now: Date.now,
    random: Math.random,
    onChange: (change) => changes.push(change),
    onError: (error) => errors.push(error),
    ...given,
  });
  cleanup.defer(() => discovery.stop());
  return { discovery, changes, errors };
}
