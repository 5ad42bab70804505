import { isIP, SocketAddress } from 'node:net';

/**
 * The one spelling of an address by which addresses are compared: v6 in its short form without a zone, an IPv4-mapped
 * v6 address as the v4 address that it stands for. `undefined`: not an address.
 */
export function canonicalIp(text: string): string | undefined {
  const version = isIP(text);
  if (version === 0) return undefined;
  if (version === 4) return text;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  const mapped = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : '';
  return isIP(mapped) === 4 ? mapped : address;
}

/** `10.0.0.7:80`, `[::1]:80`: the spelling of an address with a port. */
export function ipWithPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
