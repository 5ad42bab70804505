import type { Chain, ChainLayer } from '../../model/chain.ts';
import type { SpanFacts } from '../attributes.ts';

/** What proxies in a row did of one request, from the one whose exchange it is inwards. */
export function chainAttributes(chain: Chain | undefined): SpanFacts {
  if (chain === undefined) return {};
  const { amplification, layers, origin } = chain;
  return {
    'sidelight.chain.amplification': rounded(amplification),
    'sidelight.chain.factors': layers.map(({ attempts, exchanges }) => rounded(attempts / exchanges)).join(' × '),
    'sidelight.chain.layers': layers.map(layerName).join(' × '),
    'sidelight.chain.origin': origin && layerName(origin),
  };
}

/** Two decimals: a layer may have tried one request again and another not. */
export function rounded(factor: number): number {
  return Math.round(factor * 100) / 100;
}

function layerName({ kind, workload }: ChainLayer): string {
  return `${workload} (${kind})`;
}
