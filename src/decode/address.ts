import { canonicalIp, ipWithPort } from '../lib/ip.ts';
import { memo } from '../lib/memo.ts';
import type { Endpoint } from '../model/endpoint.ts';
import { cutText, maxRemembered } from './text.ts';
import type { WireAddress } from './wire-types.ts';

/** The client's address of a log entry. `undefined`: there is none. */
export function clientOfAddress(address: WireAddress | undefined): Endpoint | undefined {
  const text = address === undefined ? undefined : addressText(address);
  return text === undefined ? undefined : endpointOfText(text);
}

/** The upstream's address of a log entry, one object for each. `undefined`: there is none. */
export function upstreamOfAddress(address: WireAddress | undefined): Endpoint | undefined {
  const text = address === undefined ? undefined : addressText(address);
  return text === undefined ? undefined : upstreamOfText(text);
}

function addressText({ socketAddress, pipe, envoyInternalAddress }: WireAddress): string | undefined {
  if (socketAddress !== undefined) return ipWithPort(socketAddress.address ?? '', socketAddress.portValue ?? 0);
  if (pipe !== undefined) return pipe.path;
  if (envoyInternalAddress === undefined) return undefined;
  return `${internalScheme}${envoyInternalAddress.serverListenerName ?? ''}/${envoyInternalAddress.endpointId ?? ''}`;
}

const internalScheme = 'envoy://';
/** A unix socket's path has at most 108 bytes. */
const longestAddressBytes = 512;
const ipAndPort = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/;

/** An address in Envoy's own spelling, as in `upstream.address`. `undefined`: empty. Never throws. */
export function endpointOfText(wholeText: string): Endpoint | undefined {
  const text = cutText(wholeText, longestAddressBytes);
  if (text === '') return undefined;
  if (text.startsWith(internalScheme)) {
    const inner = text.slice(text.indexOf('/', internalScheme.length) + 1);
    return { text, kind: 'internal', ...ipOfText(inner) };
  }
  // `@name` is an abstract unix socket.
  if (text.startsWith('/') || text.startsWith('@')) return { text, kind: 'pipe', ip: undefined, port: undefined };
  const socket = ipOfText(text);
  return { text, kind: socket.ip === undefined ? 'other' : 'ip', ...socket };
}

const rememberedEndpoint = memo(endpointOfText, maxRemembered);

/** As `endpointOfText`, but one object for each upstream: see `sameCluster`. */
export function upstreamOfText(wholeText: string): Endpoint | undefined {
  return rememberedEndpoint(cutText(wholeText, longestAddressBytes));
}

function ipOfText(text: string): Pick<Endpoint, 'ip' | 'port'> {
  const parts = ipAndPort.exec(text);
  const ip = canonicalIp(parts?.[1] ?? parts?.[2] ?? '');
  const port = Number(parts?.[3]);
  return ip === undefined || port > 65_535 ? { ip: undefined, port: undefined } : { ip, port };
}
