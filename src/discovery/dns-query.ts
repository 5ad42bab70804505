import { NODATA, NOTFOUND, promises, type RecordWithTtl } from 'node:dns';
import { canonicalIp } from '../lib/ip.ts';
import type { FamilyAnswer } from './dns-answer.ts';
import type { Asked } from './dns-servers.ts';

/** Asks both questions about a name. Never rejects. */
export interface DnsQuery {
  ask(host: string): Promise<readonly Asked[]>;
  /** Gives up on what is asked now. */
  cancel(): void;
}

export interface DnsQueryOptions {
  /** IP or IP:port; empty: the system's. */
  servers: readonly string[];
  /** `first`: in order, until one answers. `all`: each by itself. */
  ask: 'first' | 'all';
  /** Per server. */
  timeoutMs: number;
}

/** Resolvers of our own: no cache (TTLs are what the servers said), no search domains, no hosts file. */
export function createDnsQuery({ servers, ask, timeoutMs }: DnsQueryOptions): DnsQuery {
  const chosen = servers.length > 0 ? servers : new promises.Resolver().getServers();
  const groups = ask === 'all' ? chosen.map((server) => [server]) : [[...chosen]];
  const resolvers = groups.map((group) => ({ server: group.join(', '), resolver: createResolver(group, timeoutMs) }));
  return {
    ask: async (host) =>
      Promise.all(
        resolvers.map(async ({ server, resolver }) => {
          const [v4, v6] = await Promise.all([
            familyAnswer(resolver.resolve4(host, { ttl: true })),
            familyAnswer(resolver.resolve6(host, { ttl: true })),
          ]);
          return { server, round: { v4, v6 } };
        }),
      ),
    cancel() {
      for (const { resolver } of resolvers) resolver.cancel();
    },
  };
}

function createResolver(servers: readonly string[], timeoutMs: number): promises.Resolver {
  // One try: the next round is the next try, and it comes soon.
  const resolver = new promises.Resolver({ timeout: timeoutMs, tries: 1 });
  if (servers.length > 0) resolver.setServers(servers);
  return resolver;
}

async function familyAnswer(asked: Promise<RecordWithTtl[]>): Promise<FamilyAnswer> {
  try {
    const records = await asked;
    const addresses = records.map(({ address }) => canonicalIp(address)).filter((ip) => ip !== undefined);
    if (addresses.length === 0) return { kind: 'none', error: NODATA };
    // Not Math.min(...): a name may have more records than a call takes arguments.
    const ttl = records.reduce((shortest, record) => Math.min(shortest, record.ttl), Number.POSITIVE_INFINITY);
    return { kind: 'addresses', addresses, ttlMs: ttl * 1000 };
  } catch (error) {
    const code = codeOf(error);
    return { kind: code === NODATA || code === NOTFOUND ? 'none' : 'failed', error: code };
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
