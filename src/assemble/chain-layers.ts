import type { ChainLayer, EndKind } from '../model/chain.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Reporter } from '../model/reporter.ts';
import { hostless, reachedPeer } from './build-exchange.ts';

/** Proxies that pass on one request: more are none in a row, and are left out. */
const mostLayers = 16;

type Place = Pick<Reporter, 'kind' | 'workload' | 'namespace'>;

/** The layer of a reporter, made where it is not there yet; absent where there are too many, or no list. */
export function layerOf(
  layers: ChainLayer[] | undefined,
  { kind, workload, namespace }: Place,
): ChainLayer | undefined {
  if (layers === undefined) return undefined;
  const known = layers.find((one) => one.workload === workload && one.kind === kind && one.namespace === namespace);
  if (known !== undefined || layers.length >= mostLayers) return known;
  const fresh = {
    kind,
    workload,
    namespace,
    exchanges: 0,
    attempts: 0,
    sent: 0,
    failed: 0,
    aborted: 0,
    durationMs: 0,
    missing: 0,
  };
  layers.push(fresh);
  return fresh;
}

/** Counts the entry of an attempt. */
export function countAttempt(layer: ChainLayer, entry: LogEntry): void {
  layer.missing -= 1;
  if (!reachedPeer(entry)) return;
  layer.attempts += 1;
  if (entry.firstUpstreamTxMs !== undefined) layer.sent += 1;
}

/** Counts the entry of an exchange's end. */
export function countEnd(layer: ChainLayer, entry: LogEntry, how: EndKind): void {
  layer.exchanges += 1;
  layer.durationMs += entry.durationMs ?? 0;
  layer.missing += (entry.attemptCount ?? 0) - hostless([entry]);
  if (how === 'failed') layer.failed += 1;
  if (how === 'aborted') layer.aborted += 1;
}

/** Adds what was counted elsewhere of the same layer. */
export function addLayer(layers: ChainLayer[], from: ChainLayer): void {
  const layer = layerOf(layers, from);
  if (layer === undefined) return;
  layer.exchanges += from.exchanges;
  layer.attempts += from.attempts;
  layer.sent += from.sent;
  layer.failed += from.failed;
  layer.aborted += from.aborted;
  layer.durationMs += from.durationMs;
  layer.missing += from.missing;
}
