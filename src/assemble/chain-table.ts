import { LRUCache } from 'lru-cache';
import type { ChainLayer, EndKind } from '../model/chain.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Reporter } from '../model/reporter.ts';
import { isRedirect } from './build-exchange.ts';
import { addLayer, countAttempt, countEnd, layerOf } from './chain-layers.ts';
import { isMirror } from './mirrors.ts';

export interface ChainTableOptions {
  /** Requests held at once; the one not heard of for longest leaves. */
  maxRequests: number;
  /** One that was not heard of for so long begins anew, ms. */
  keepMs: number;
}

/** What tells one request of a trace from the others, the same at each proxy that passes it on unchanged. */
export interface RequestFacts {
  /** As it went upstream. */
  traceparent: string | undefined;
  method: string | undefined;
  authority: string | undefined;
  path: string | undefined;
}

/** All that was reported of a request under one span of its trace. */
interface Request {
  layers: ChainLayer[];
  /** Keys of the same request under the spans that further proxies injected, whose parent this span is. */
  inner: string[];
  heardMs: number;
}

/** Requests right under another, and all of one answer: a trace with more is no request that was retried. */
const mostInner = 64;
const mostRequests = 4096;

/**
 * Counts what every proxy reports of a request that carries a `traceparent`, from the entries as they come: an exchange
 * is closed a linger later, and by then the proxies further in have told of theirs, which ended before.
 */
export class ChainTable {
  readonly #keepMs: number;
  readonly #requests: LRUCache<string, Request>;

  constructor({ maxRequests, keepMs }: ChainTableOptions) {
    this.#keepMs = keepMs;
    this.#requests = new LRUCache({ max: maxRequests });
  }

  /** Requests held now; never more than `maxRequests`. */
  get size(): number {
    return this.#requests.size;
  }

  /** Takes one HTTP entry. `how`: the exchange that it ends ended. `nowMs`: epoch ms, our clock. */
  add(entry: LogEntry, reporter: Reporter, how: EndKind, nowMs: number): void {
    const { traceparent, injected } = entry.tags;
    const key = keyOf({ ...entry, traceparent });
    if (key === undefined) return;
    if (entry.type === 'upstream_end' && !isMirror(entry, reporter.envoyVersion)) {
      const layer = layerOf(this.#request(key, nowMs).layers, reporter);
      if (layer !== undefined) countAttempt(layer, entry);
    }
    if (entry.type !== 'downstream_end' || isRedirect(entry)) return;
    const layer = layerOf(this.#request(key, nowMs).layers, reporter);
    if (layer !== undefined) countEnd(layer, entry, how);
    if (injected?.parentSpanId === undefined) return;
    const outer = keyOf({ ...entry, traceparent: `00-${injected.traceId}-${injected.parentSpanId}-00` });
    if (outer !== undefined) putUnder(this.#request(outer, nowMs), key);
  }

  /** The layers that reported this request and the same one under it, in no order. None without a `traceparent`. */
  layers(request: RequestFacts): ChainLayer[] {
    const layers: ChainLayer[] = [];
    const key = keyOf(request);
    if (key !== undefined) this.#collect(key, layers, new Set());
    return layers;
  }

  #collect(key: string, layers: ChainLayer[], seen: Set<string>): void {
    const request = this.#requests.get(key);
    if (request === undefined || seen.has(key) || seen.size >= mostRequests) return;
    seen.add(key);
    for (const layer of request.layers) addLayer(layers, layer);
    for (const inner of request.inner) this.#collect(inner, layers, seen);
  }

  #request(key: string, nowMs: number): Request {
    const known = this.#requests.get(key);
    if (known !== undefined && nowMs - known.heardMs <= this.#keepMs) {
      known.heardMs = nowMs;
      return known;
    }
    const fresh: Request = { layers: [], inner: [], heardMs: nowMs };
    this.#requests.set(key, fresh);
    return fresh;
  }
}

function putUnder({ inner }: Request, key: string): void {
  if (inner.length < mostInner && !inner.includes(key)) inner.push(key);
}

/** Version, trace id and span id; what follows are flags. */
const idsLength = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'.length;

function keyOf({ traceparent, method, authority, path }: RequestFacts): string | undefined {
  if (traceparent === undefined || traceparent.length <= idsLength) return undefined;
  return `${traceparent.slice(0, idsLength)} ${method} ${authority}${path}`;
}
