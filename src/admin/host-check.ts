import { isIP } from 'node:net';
import { canonicalIp } from '../lib/ip.ts';

/** Whether an address that is listened on is reached from this machine only. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true;
  const ip = canonicalIp(host);
  return ip !== undefined && (ip.startsWith('127.') || ip === '::1');
}

/**
 * Whether a `Host` header names this machine. A browser that was led here by a foreign name (DNS rebinding) still sends
 * that name.
 */
export function isLocalHostHeader(header: string | undefined): boolean {
  if (header === undefined) return false;
  const host = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:[\]]+))(?::\d{1,5})?$/.exec(header)?.groups;
  const name = host?.['v6'] ?? host?.['name'];
  if (name === undefined || (host?.['v6'] !== undefined && isIP(name) !== 6)) return false;
  return isLoopback(name);
}
