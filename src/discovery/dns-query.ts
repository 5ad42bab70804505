import { NODATA, NOTFOUND, promises, type RecordWithTtl } from 'node:dns';
import { canonicalIp } from '../lib/ip.ts';
import type { FamilyAnswer, Round } from './dns-answer.ts';

/** Asks both questions about a name. Never rejects. */
export interface DnsQuery {
  ask(host: string): Promise<Round>;
  /** Gives up on what is asked now. */
  cancel(): void;
}

/**
 * A resolver of our own: no cache (TTLs are what the servers said), no search domains, no hosts file.
 * `servers`: IP or IP:port, empty for the system's. `timeoutMs`: per server.
 */
export function createDnsQuery(options: { servers: readonly string[]; timeoutMs: number }): DnsQuery {
  // One try: the next round is the next try, and it comes soon.
  const resolver = new promises.Resolver({ timeout: options.timeoutMs, tries: 1 });
  if (options.servers.length > 0) resolver.setServers(options.servers);
  return {
    async ask(host) {
      const [v4, v6] = await Promise.all([
        familyAnswer(resolver.resolve4(host, { ttl: true })),
        familyAnswer(resolver.resolve6(host, { ttl: true })),
      ]);
      return { v4, v6 };
    },
    cancel: () => resolver.cancel(),
  };
}

async function familyAnswer(asked: Promise<RecordWithTtl[]>): Promise<FamilyAnswer> {
  try {
    const records = await asked;
    const addresses = records.map(({ address }) => canonicalIp(address)).filter((ip) => ip !== undefined);
    if (addresses.length === 0) return { kind: 'none', error: NODATA };
    return { kind: 'addresses', addresses, ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000 };
  } catch (error) {
    const code = codeOf(error);
    return { kind: code === NODATA || code === NOTFOUND ? 'none' : 'failed', error: code };
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
