import type { z } from 'zod';
import type { ProxyHost } from '../../model/view.ts';
import { type AdminClient, failure } from './admin-client.ts';
import { patternsOf } from './patterns.ts';
import {
  clustersAnswer,
  endpointsAnswer,
  furtherAddresses,
  type ListedCluster,
  listedClusters,
} from './read-clusters.ts';
import {
  type ClusterFacts,
  clusterFacts,
  configAnswer,
  configMask,
  runtimeAnswer,
  serverAnswer,
  shortVersion,
  statsAnswer,
} from './read-facts.ts';

/** Who answers at an admin interface. */
export interface Identity {
  nodeId: string;
  /** `1.40.0` */
  envoyVersion: string;
}

/** What is asked of one Envoy. Every method throws `envoy_admin_failed`. */
export class Questions {
  readonly #url: string;
  readonly #client: AdminClient;

  constructor(url: string, client: AdminClient) {
    this.#url = url;
    this.#client = client;
  }

  /** Throws for an Envoy that is not ready: its lists are empty because they have not come yet. */
  async identity(): Promise<Identity> {
    const { version, state, node } = await this.#ask('/server_info', serverAnswer);
    if (state !== 'LIVE' && state !== 'DRAINING')
      throw failure(`${this.#url}/server_info`, { value: state, expected: 'state LIVE' });
    return { nodeId: node.id, envoyVersion: shortVersion(version) };
  }

  /** `undefined`: no layer sets the flag, so the version decides. */
  async newDnsImplementation(): Promise<boolean | undefined> {
    const { entries } = await this.#ask('/runtime?format=json', runtimeAnswer);
    const value = entries['envoy.reloadable_features.enable_new_dns_implementation']?.final_value;
    return value === undefined ? undefined : value === 'true';
  }

  /** What the clusters' configs say. One that Envoy does not have is left out. */
  async facts(clusters: readonly string[]): Promise<Map<string, ClusterFacts>> {
    const facts = new Map<string, ClusterFacts>();
    for (const pattern of patternsOf(clusters)) {
      for (const resource of ['static_clusters', 'dynamic_active_clusters']) {
        const query = `resource=${resource}&name_regex=${encodeURIComponent(pattern)}&mask=${configMask}`;
        for (const [name, found] of clusterFacts(await this.#ask(`/config_dump?${query}`, configAnswer)))
          facts.set(name, found);
      }
    }
    return facts;
  }

  /**
   * The clusters' hosts, by cluster. Envoy 1.37 knows no filter: it gives all that it has at once, and is not asked a
   * second time. `unaskedBytes`: how much came that nobody asked for.
   */
  async hosts(clusters: readonly string[]): Promise<{ listed: Map<string, ListedCluster>; unaskedBytes: number }> {
    const asked = new Set(clusters);
    const listed = new Map<string, ListedCluster>();
    for (const pattern of patternsOf(clusters)) {
      const path = `/clusters?format=json&filter=${encodeURIComponent(pattern)}`;
      const { value, sizeBytes } = await this.#client.json(path);
      const answer = listedClusters(this.#checked(path, clustersAnswer, value));
      for (const [name, cluster] of answer) if (asked.has(name)) listed.set(name, cluster);
      if ([...answer.keys()].some((name) => !asked.has(name))) return { listed, unaskedBytes: sizeBytes };
    }
    return { listed, unaskedBytes: 0 };
  }

  /**
   * Further addresses of hosts (dual stack; the later ones of a LOGICAL_DNS name): Envoy connects to them too, and
   * `/clusters` leaves them out (Envoy 1.38 and 1.40). By the name that the endpoints are asked by.
   */
  async furtherAddresses(edsNames: readonly string[]): Promise<Map<string, ReadonlyMap<string, readonly string[]>>> {
    const further = new Map<string, ReadonlyMap<string, readonly string[]>>();
    for (const pattern of patternsOf(edsNames)) {
      for (const resource of ['static_endpoint_configs', 'dynamic_endpoint_configs']) {
        const query = `include_eds&resource=${resource}&name_regex=${encodeURIComponent(pattern)}`;
        const answer = await this.#ask(`/config_dump?${query}`, endpointsAnswer);
        for (const [name, found] of furtherAddresses(answer)) further.set(name, found);
      }
    }
    return further;
  }

  /** Gauges and counters by their whole names. One that Envoy does not keep is left out: that is not 0. */
  async numbers(names: readonly string[]): Promise<Map<string, number>> {
    const numbers = new Map<string, number>();
    for (const pattern of patternsOf(names)) {
      const { stats } = await this.#ask(`/stats?format=json&filter=${encodeURIComponent(pattern)}`, statsAnswer);
      for (const { name, value } of stats)
        if (name !== undefined && typeof value === 'number') numbers.set(name, value);
    }
    return numbers;
  }

  async #ask<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    const { value } = await this.#client.json(path);
    return this.#checked(path, schema, value);
  }

  #checked<T>(path: string, schema: z.ZodType<T>, value: unknown): T {
    const checked = schema.safeParse(value);
    if (checked.success) return checked.data;
    const [issue] = checked.error.issues;
    throw failure(`${this.#url}${path}`, {
      expected: `an answer of Envoy (${issue?.path.join('.')}: ${issue?.message})`,
    });
  }
}

/** A cluster's hosts with their further addresses, whose connections Envoy counts under the first one. */
export function withFurther(
  hosts: ReadonlyMap<string, ProxyHost>,
  further: ReadonlyMap<string, readonly string[]> | undefined,
): ReadonlyMap<string, ProxyHost> {
  if (further === undefined || further.size === 0) return hosts;
  const all = new Map(hosts);
  for (const [first, addresses] of further) {
    const host = hosts.get(first);
    if (host === undefined) continue;
    for (const address of addresses) if (!all.has(address)) all.set(address, { ...host, activeConnections: undefined });
  }
  return all;
}
