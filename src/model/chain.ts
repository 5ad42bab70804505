import type { Reporter } from './reporter.ts';

/** What one kind of proxy of one workload did of a request that several proxies passed on, as far as it was reported here. */
export interface ChainLayer extends Pick<Reporter, 'kind' | 'workload' | 'namespace'> {
  /** That ended; of the outermost layer usually 1. */
  exchanges: number;
  attempts: number;
  /** Attempts that sent the request over a connection: each of them arrived at the next layer. */
  sent: number;
  /** Exchanges that failed. */
  failed: number;
  /** Exchanges whose client, the layer before, left first. */
  aborted: number;
  /** Of all exchanges together, ms. */
  durationMs: number;
  /** Attempts that Envoy counted, less the entries that came of attempts; above 0 where entries are missing. */
  missing: number;
}

/** How an exchange ended: `aborted` where its client left first. */
export type EndKind = 'succeeded' | 'failed' | 'aborted';

/** How a request multiplied on its way. Known only where every layer's sends are the next one's exchanges. */
export interface Chain {
  /** Two or more, the outermost first. */
  layers: readonly ChainLayer[];
  /**
   * Attempts ÷ exchanges of each layer, multiplied: what one request of the outermost cost the last one. A layer
   * that sent nothing on counts as 1. More than 0.
   */
  amplification: number;
  /** Of a failure: the innermost layer that failed whenever the layers before it did; absent where nothing failed. */
  origin: ChainLayer | undefined;
}
