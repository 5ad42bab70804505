import { ipWithPort } from '../lib/ip.ts';
import type { Endpoint } from '../model/endpoint.ts';
import { hasLeft, type PinVerdict } from '../model/verdict.ts';
import { isStale, listsEndpoints, type ProxyHost, type ProxyView } from '../model/view.ts';

/** How a proxy's own list contradicts the world's, or the bytes. docs/reference/verdicts.md. */
export const contradictions = [
  /** The endpoint left, and the proxy lists it: its control plane or its resolver gives an old answer. */
  'proxy_still_lists',
  /** The proxy uses a connection to an endpoint that it does not list. */
  'proxy_not_listing',
  /** The endpoint is listed, and the proxy does not know it. */
  'proxy_misses',
] as const;
export type Contradiction = (typeof contradictions)[number];

/** A connection, its pin, and what its proxy lists. Times are epoch ms, our clock. */
export interface ContradictionFacts {
  endpoint: Pick<Endpoint, 'text' | 'ip' | 'port'>;
  pin: PinVerdict;
  openedMs: number;
  /** `undefined`: the proxy is not asked. */
  proxy: ProxyView | undefined;
  nowMs: number;
}

/**
 * `undefined`: the two agree, or nobody can tell. What a proxy said before the connection was opened, or before the
 * endpoint left, contradicts nothing. A host that it only keeps until a health check fails is neither listed nor missing.
 */
export function contradictionOf(facts: ContradictionFacts): Contradiction | undefined {
  const { endpoint, pin, openedMs, proxy, nowMs } = facts;
  if (proxy === undefined || isStale(proxy, nowMs) || !listsEndpoints(proxy.type)) return undefined;
  if (proxy.lastAnswerMs <= Math.max(openedMs, pin.leftAtMs ?? openedMs)) return undefined;
  const hosts = hostsAt(proxy, endpoint);
  if (hosts.some(({ pendingRemoval }) => pendingRemoval)) return undefined;
  if (hosts.length > 0) return hasLeft(pin.pin) ? 'proxy_still_lists' : undefined;
  return pin.pin === 'current' ? 'proxy_misses' : 'proxy_not_listing';
}

/** Whether the proxy may open connections to an endpoint, by its own list. False also where that is not known. */
export function isListedByProxy(
  proxy: ProxyView,
  endpoint: Pick<Endpoint, 'text' | 'ip' | 'port'>,
  nowMs: number,
): boolean {
  return !isStale(proxy, nowMs) && hostsAt(proxy, endpoint).some(({ pendingRemoval }) => !pendingRemoval);
}

/**
 * Whether a connection of the cluster to this endpoint can have been open when the proxy was last asked
 * (`proxy.lastAnswerMs`). False: Envoy's own numbers prove that there was none. True: its number for this host is above
 * 0. `undefined`: they do not tell.
 */
export function mayHoldConnection(
  proxy: ProxyView | undefined,
  endpoint: Pick<Endpoint, 'text' | 'ip' | 'port'>,
  nowMs: number,
): boolean | undefined {
  if (proxy === undefined || isStale(proxy, nowMs) || !countsOwnConnections(proxy)) return undefined;
  if (proxy.activeConnections === 0) return false;
  // One that was opened, and one that was closed, would hide another from the sums.
  if (proxy.openedMeanwhile) return undefined;
  // Connections to an earlier, or a further, address of a host are counted as the host's.
  const ofHosts = proxy.type === 'LOGICAL_DNS' ? undefined : connectionsOfHosts(proxy);
  if (ofHosts === undefined) return undefined;
  if (sumOf(hostsAt(proxy, endpoint)) > 0) return true;
  // The hosts that are listed account for every connection: none is left for a host that is not.
  return ofHosts === proxy.activeConnections ? false : undefined;
}

/** By host list, which is immutable: thousands of connections are asked about each second, and a list has thousands of hosts. */
const knownSums = new WeakMap<ProxyView['hosts'], { sum: number | undefined }>();

/** `undefined`: a host has no number of its own. */
function connectionsOfHosts({ hosts }: ProxyView): number | undefined {
  let known = knownSums.get(hosts);
  if (known === undefined) {
    const all = [...hosts.values()];
    known = { sum: all.some(({ activeConnections }) => activeConnections === undefined) ? undefined : sumOf(all) };
    knownSums.set(hosts, known);
  }
  return known.sum;
}

/** An aggregate or a forward proxy has its connections elsewhere. */
function countsOwnConnections({ type }: ProxyView): boolean {
  return type !== undefined && ['STATIC', 'STRICT_DNS', 'LOGICAL_DNS', 'EDS', 'ORIGINAL_DST'].includes(type);
}

/** The host that is the endpoint; every one with its address where the endpoint has no port. */
function hostsAt({ hosts }: ProxyView, { text, ip, port }: ContradictionFacts['endpoint']): ProxyHost[] {
  if (ip !== undefined && port === undefined) {
    const withoutPort = ipWithPort(ip, 0).slice(0, -1);
    return [...hosts].filter(([key]) => key.startsWith(withoutPort)).map(([, host]) => host);
  }
  const host = hosts.get(ip === undefined ? text : ipWithPort(ip, port ?? 0));
  return host === undefined ? [] : [host];
}

function sumOf(hosts: readonly ProxyHost[]): number {
  return hosts.reduce((sum, { activeConnections = 0 }) => sum + activeConnections, 0);
}
