import { LRUCache } from 'lru-cache';
import type { ForgottenConnections } from '../model/endpoint-report.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';

/**
 * Until when connections may be open of which nothing is remembered, because the table had no room for them: by endpoint.
 * Bounded: of the endpoints the one heard of longest ago is forgotten first.
 */
export class Forgotten {
  readonly #untilMs: LRUCache<string, number>;

  constructor(maxEndpoints: number) {
    this.#untilMs = new LRUCache({ max: maxEndpoints });
  }

  /** `idleTimeoutMs`: after which its proxy closes it if nobody uses it; `undefined`: never. */
  add({ cluster, peer, lastHeardMs }: UpstreamConnection, idleTimeoutMs: number | undefined): void {
    const key = keyOf(cluster, peer.text);
    const untilMs = lastHeardMs + (idleTimeoutMs ?? Number.POSITIVE_INFINITY);
    this.#untilMs.set(key, Math.max(untilMs, this.#untilMs.peek(key) ?? 0));
  }

  /** `undefined`: none that may be open. */
  at(cluster: string, endpoint: string, nowMs: number): ForgottenConnections | undefined {
    const untilMs = this.#untilMs.peek(keyOf(cluster, endpoint));
    if (untilMs === undefined || untilMs <= nowMs) return undefined;
    return { mayBeOpenUntilMs: Number.isFinite(untilMs) ? untilMs : undefined };
  }
}

function keyOf(cluster: string, endpoint: string): string {
  return `${cluster}\n${endpoint}`;
}
