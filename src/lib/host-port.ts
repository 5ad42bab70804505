import { isIPv6 } from 'node:net';

export interface HostPort {
  /** A name, an IPv4 address, or an IPv6 address without brackets. */
  host: string;
  /** 0-65535. */
  port: number;
}

const shape = /^(?:\[(?<v6>[^[\]]+)\]|(?<host>[A-Za-z0-9._-]+)):(?<port>\d{1,5})$/;

/** Parses `host:port` and `[v6]:port`. `undefined`: it is neither. */
export function parseHostPort(text: string): HostPort | undefined {
  const groups = shape.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const port = Number(groups['port']);
  const host = groups['v6'] ?? groups['host'] ?? '';
  const hostFits = groups['v6'] === undefined || isIPv6(host);
  return hostFits && port <= 65_535 ? { host, port } : undefined;
}
