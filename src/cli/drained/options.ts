import { isIP } from 'node:net';
import { parseHostPort } from '../../lib/host-port.ts';
import { canonicalIp, ipWithPort } from '../../lib/ip.ts';
import { shortText } from '../../lib/short-text.ts';
import { parseDuration } from '../duration.ts';

/** What is to be shut down: one endpoint, or all that left the clusters whose source asks a name. */
export interface Target {
  kind: 'endpoint' | 'host';
  /** Canonical: `10.0.0.7`, `10.0.0.7:8080`, `[::1]:8080`, or the name in small letters. */
  text: string;
}

export interface DrainedOptions {
  target: Target;
  quietForMs: number;
  timeoutMs: number;
  /** The replicas' HTTP addresses. */
  from: readonly URL[];
  /** Node ids or pods. */
  ignored: readonly string[];
  json: boolean;
}

/** As the command line has them. */
export interface DrainedFlags {
  quietFor: string;
  timeout: string;
  /** Absent: `defaultFrom`. */
  from?: readonly string[];
  ignoreReporter?: readonly string[];
  json?: true;
}

export const defaultFrom = 'http://127.0.0.1:9464';

/** The options, or every mistake at once. */
export function parseDrained(
  targetText: string,
  flags: DrainedFlags,
): { ok: true; options: DrainedOptions } | { ok: false; problems: string[] } {
  const problems: string[] = [];
  const mistake = (what: string, found: string, expected: string): undefined => {
    problems.push(`${what}: found ${shortText(found)}: expected ${expected}`);
  };
  const target =
    parseTarget(targetText) ??
    mistake('ENDPOINT|HOST', targetText, 'IP, IP:port, [v6]:port, or a DNS name without a port');
  const duration = (what: string, text: string) =>
    parseDuration(text) ?? mistake(what, text, 'a duration such as 500ms, 60s, 15m or 1h');
  const quietForMs = duration('--quiet-for', flags.quietFor);
  if (quietForMs === 0) mistake('--quiet-for', flags.quietFor, 'more than 0');
  const timeoutMs = duration('--timeout', flags.timeout);
  const from = (flags.from ?? [defaultFrom]).map(
    (text) => parseFrom(text) ?? mistake('--from', text, 'a URL such as http://sidelight:9464, without a query'),
  );
  const ignored = flags.ignoreReporter ?? [];
  for (const id of ignored) if (id === '') mistake('--ignore-reporter', id, 'a node id or a pod');
  const urls = from.filter((url) => url !== undefined);
  if (problems.length > 0 || target === undefined || quietForMs === undefined || timeoutMs === undefined)
    return { ok: false, problems };
  const different = new Map(urls.map((url) => [url.href, url]));
  const options = { target, quietForMs, timeoutMs, ignored, json: flags.json === true };
  return { ok: true, options: { ...options, from: [...different.values()] } };
}

const dnsName = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$/i;

function parseTarget(text: string): Target | undefined {
  const ip = canonicalIp(text.replace(/^\[(.*)\]$/, '$1'));
  if (ip !== undefined) return { kind: 'endpoint', text: ip };
  const parsed = parseHostPort(text);
  if (parsed !== undefined) {
    const address = canonicalIp(parsed.host);
    if (address === undefined || parsed.port === 0) return undefined;
    return { kind: 'endpoint', text: ipWithPort(address, parsed.port) };
  }
  // What ends in a number is an address with a slip in it: no top level domain is one.
  const isNumeric = /(^|\.)\d+\.?$/.test(text);
  return dnsName.test(text) && !isNumeric ? { kind: 'host', text: text.toLowerCase() } : undefined;
}

function parseFrom(text: string): URL | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

/** The host of a URL, an IPv6 address without its brackets, and whether it is an address already. */
export function hostOf(url: URL): { host: string; isAddress: boolean } {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, isAddress: isIP(host) !== 0 };
}
