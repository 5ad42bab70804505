import type { ChainLayer, EndKind } from '../model/chain.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Reporter } from '../model/reporter.ts';
import { isRedirect } from './build-exchange.ts';
import { addLayer, countAttempt, countEnd, layerOf } from './chain-layers.ts';
import { isMirror } from './mirrors.ts';
import { RecentMap } from './recent-map.ts';

export interface ChainTableOptions {
  /** Spans of traces held at once; those not heard of for longest leave. */
  maxSpans: number;
  /** A request that was not heard of for so long begins anew, ms. */
  keepMs: number;
}

/** What tells one request under a span from the others, the same at each proxy that passes it on unchanged. */
export interface RequestFacts {
  method: string | undefined;
  authority: string | undefined;
  path: string | undefined;
}

/** All that was reported of a request under one span of its trace. */
interface Request extends RequestFacts {
  layers: ChainLayer[];
  /** The `traceparent`s that further proxies injected into the same request, and whose parent this span is. */
  inner: string[];
  heardMs: number;
}

/** Requests of one span that look different. More come where an application copies its headers to all that it calls. */
const mostPerSpan = 8;
/** Spans right under another, and all of one answer: with more it is no request that was tried again. */
const mostInner = 64;
const mostSpans = 4096;

/**
 * Counts what every proxy reports of a request that carries a `traceparent`, from the entries as they come: an exchange
 * is closed a linger later, and by then the proxies further in have told of theirs, which ended before.
 */
export class ChainTable {
  readonly #keepMs: number;
  /** By `traceparent`, as it is: a key of several texts would be made anew, and hashed, for each entry. */
  readonly #spans: RecentMap<Request[]>;

  constructor({ maxSpans, keepMs }: ChainTableOptions) {
    this.#keepMs = keepMs;
    this.#spans = new RecentMap(maxSpans);
  }

  /** Spans held now; never more than `maxSpans`. */
  get size(): number {
    return this.#spans.size;
  }

  /** Takes one HTTP entry. `how`: the exchange that it ends ended. `nowMs`: epoch ms, our clock. */
  add(entry: LogEntry, reporter: Reporter, how: EndKind, nowMs: number): void {
    const { traceparent, injected } = entry.tags;
    if (traceparent === undefined || traceparent.length !== traceparentLength) return;
    if (entry.type === 'upstream_end' && !isMirror(entry, reporter.envoyVersion)) {
      const layer = layerOf(this.#request(traceparent, entry, nowMs)?.layers, reporter);
      if (layer !== undefined) countAttempt(layer, entry);
    }
    if (entry.type !== 'downstream_end' || isRedirect(entry)) return;
    const layer = layerOf(this.#request(traceparent, entry, nowMs)?.layers, reporter);
    if (layer !== undefined) countEnd(layer, entry, how);
    if (injected?.parentSpanId === undefined) return;
    const flags = traceparent.slice(-2);
    const outer = `00-${injected.traceId}-${injected.parentSpanId}-${flags}`;
    const inner = this.#request(outer, entry, nowMs)?.inner;
    if (inner !== undefined && inner.length < mostInner && !inner.includes(traceparent)) inner.push(traceparent);
  }

  /** The layers that reported a request and the same one under it, in no order. None without a `traceparent`. */
  layers(traceparent: string | undefined, facts: RequestFacts): readonly ChainLayer[] {
    const request = this.#find(traceparent, facts);
    if (traceparent === undefined || request === undefined) return [];
    // Most requests pass one proxy, and this is asked for each.
    if (request.layers.length < 2 && request.inner.length === 0) return request.layers;
    const layers: ChainLayer[] = [];
    this.#collect(traceparent, facts, layers, new Set());
    return layers;
  }

  #collect(traceparent: string, facts: RequestFacts, layers: ChainLayer[], seen: Set<string>): void {
    const request = this.#find(traceparent, facts);
    if (request === undefined || seen.has(traceparent) || seen.size >= mostSpans) return;
    seen.add(traceparent);
    for (const layer of request.layers) addLayer(layers, layer);
    for (const inner of request.inner) this.#collect(inner, facts, layers, seen);
  }

  #find(traceparent: string | undefined, facts: RequestFacts): Request | undefined {
    const requests = traceparent === undefined ? undefined : this.#spans.get(traceparent);
    return requests?.find((one) => isSame(one, facts));
  }

  /** The request, made where it is not there yet; absent where its span has too many. */
  #request(traceparent: string, facts: RequestFacts, nowMs: number): Request | undefined {
    const requests = this.#spans.get(traceparent);
    const index = requests?.findIndex((one) => isSame(one, facts)) ?? -1;
    const known = requests?.[index];
    if (known !== undefined && nowMs - known.heardMs <= this.#keepMs) {
      known.heardMs = nowMs;
      return known;
    }
    const { method, authority, path } = facts;
    const fresh: Request = { method, authority, path, layers: [], inner: [], heardMs: nowMs };
    if (requests === undefined) this.#spans.set(traceparent, [fresh]);
    else if (known !== undefined) requests[index] = fresh;
    else if (requests.length < mostPerSpan) requests.push(fresh);
    else return undefined;
    return fresh;
  }
}

const traceparentLength = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'.length;

function isSame(a: RequestFacts, b: RequestFacts): boolean {
  return a.path === b.path && a.authority === b.authority && a.method === b.method;
}
