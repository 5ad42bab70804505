import { lookup } from 'node:dns/promises';
import { isIPv4 } from 'node:net';
import type { Address } from './ask.ts';
import { hostOf } from './options.ts';

/** Every address of a host name. May take as long as it likes, and rejects as `dns.lookup` does. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** As the system resolves: search domains, hosts file and all. */
export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
};

/**
 * The replicas behind a URL: one for each address of its name (a headless Service has one per pod). Of a name with
 * addresses of both families only IPv4 counts: a pod has one of each. Rejects if the name has no address in time.
 */
export async function addressesOf(url: URL, resolve: Resolve, timeoutMs: number): Promise<Address[]> {
  const { host, isAddress } = hostOf(url);
  // This machine is one replica, whichever of its addresses is listened on.
  if (isAddress || /(^|\.)localhost$/.test(host)) return [{ url, address: undefined }];
  const late = AbortSignal.timeout(timeoutMs);
  const found = await Promise.race([
    resolve(host),
    new Promise<never>((_, reject) => {
      late.addEventListener('abort', () => reject(new Error(`no address within ${timeoutMs} ms`)), { once: true });
    }),
  ]);
  const v4 = found.filter((address) => isIPv4(address));
  return Array.from(new Set(v4.length > 0 ? v4 : found), (address) => ({ url, address }));
}

/** How an address is called in words. */
export function nameOf({ url, address }: Address): string {
  const base = url.href.replace(/\/$/, '');
  return address === undefined ? base : `${base} (${address})`;
}
