import type { Chain, ChainLayer } from '../model/chain.ts';
import type { Exchange } from '../model/exchange.ts';
import type { ReporterKind } from '../model/reporter.ts';
import type { Verdict } from '../model/verdict.ts';

/**
 * The chain that an exchange begins, from all that was reported of its request, and under it, by when it is closed.
 * Absent where that cannot be known: one layer alone, an exchange that is not the outermost, or numbers that do not fit.
 * Each send of a layer is an exchange of the next one, unless somebody reports to another replica or is not attached, an
 * entry was lost, or the requests only look alike.
 */
export function judgeChain(exchange: Exchange, verdict: Verdict, reported: readonly ChainLayer[]): Chain | undefined {
  if (reported.length < 2) return undefined;
  const own = reported.find((layer) => isOf(layer, exchange));
  if (own === undefined || !isWhole(own, exchange, reported)) return undefined;
  const layers = inARow(own, reported);
  if (layers === undefined) return undefined;
  const factors = layers.map(({ attempts, exchanges }) => (attempts === 0 ? 1 : attempts / exchanges));
  const amplification = factors.reduce((product, factor) => product * factor, 1);
  return { layers, amplification, origin: originOf(layers, exchange, verdict) };
}

function isOf({ kind, workload, namespace }: ChainLayer, { reporter }: Exchange): boolean {
  return kind === reporter.kind && workload === reporter.workload && namespace === reporter.namespace;
}

/** A request leaves a workload once and enters one once: two of a kind are two requests that look alike. */
const onceInARow: ReadonlySet<ReporterKind> = new Set(['sidecar_outbound', 'sidecar_inbound']);

function isWhole(own: ChainLayer, { attempts, incomplete }: Exchange, reported: readonly ChainLayer[]): boolean {
  if (incomplete !== undefined || own.attempts < attempts.length) return false;
  if (own.exchanges === 1 && own.attempts !== attempts.length) return false;
  const once = reported.map(({ kind }) => kind).filter((kind) => onceInARow.has(kind));
  if (new Set(once).size < once.length) return false;
  return reported.every(({ exchanges, missing }) => exchanges > 0 && missing <= 0);
}

/** From the outermost inwards; absent where the numbers do not fit, or who is inside whom does not show. */
function inARow(own: ChainLayer, reported: readonly ChainLayer[]): ChainLayer[] | undefined {
  const rest = new Set(reported);
  rest.delete(own);
  if (![...rest].every((layer) => isAround(own, layer))) return undefined;
  const row = [own];
  for (let last = own; rest.size > 0; ) {
    const candidates = [...rest].filter(({ exchanges }) => exchanges === last.sent);
    const next = candidates.find((one) => candidates.every((other) => other === one || isAround(one, other)));
    if (next === undefined) return undefined;
    rest.delete(next);
    row.push(next);
    last = next;
  }
  return row;
}

/** What a request passes in a mesh, where it passes it. Other proxies may be anywhere. */
const meshOrder: readonly ReporterKind[] = ['sidecar_outbound', 'waypoint', 'sidecar_inbound'];

/**
 * Whether a layer is known to be outside of another. Who is inside takes less time, by each proxy's own clock. Where one
 * was cut off that says little, since the one before ends first; where they have as many exchanges each, nothing.
 */
function isAround(outer: ChainLayer, inner: ChainLayer): boolean {
  const tied = outer.exchanges === inner.exchanges;
  if (!tied || outer.aborted + inner.aborted === 0) return outer.durationMs > inner.durationMs;
  const [first, second] = [meshOrder.indexOf(outer.kind), meshOrder.indexOf(inner.kind)];
  return first >= 0 && first < second;
}

/** A failure is passed on from the next layer where that one failed every time. */
function originOf(layers: readonly ChainLayer[], exchange: Exchange, { outcome }: Verdict): ChainLayer | undefined {
  if (outcome !== 'failed' && outcome !== 'exhausted') return undefined;
  // The last word was its own: the request did not arrive at the next layer.
  if (exchange.attempts.at(-1)?.firstUpstreamTxMs === undefined) return layers[0];
  const sound = layers.findIndex(({ exchanges, failed }, index) => index > 0 && failed < exchanges);
  return layers[(sound === -1 ? layers.length : sound) - 1];
}
