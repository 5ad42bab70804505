import type { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import type { Cluster } from '../../src/lab/envoy-config.ts';
import { retry, toApp } from '../fixtures/cases/parts.ts';
import { type LoggingEnvoy, startLoggingEnvoy } from './tagging-scene.ts';

/** The workloads of the chain, in the order in which a request passes them. */
export const layers = ['edge', 'middle', 'inner'] as const;

export interface ChainOptions {
  /** Where each proxy reports to, `ip:port` by its place; one for all of them, unless told otherwise. */
  sidelightPorts: readonly [number, number, number];
  /** Where the last one sends to. */
  backend: string;
  /** How long each keeps log entries back, ms; 50 unless told otherwise. */
  logFlushMs?: number;
  /** The tagger of each sets `traceparent`. */
  inject?: boolean;
}

/** Three real Envoys in a row on the shipped config, each of which tries a request that failed twice more. The outermost first. */
export async function startChain(cleanup: Cleanup, options: ChainOptions): Promise<LoggingEnvoy[]> {
  const chain: LoggingEnvoy[] = [];
  let next: Cluster = staticCluster([options.backend], { name: 'backend' });
  for (const [index, name] of [...layers.entries()].toReversed()) {
    const envoy = await startLoggingEnvoy(cleanup, name, {
      base: 'full',
      sidelightPort: options.sidelightPorts[index] ?? 0,
      clusters: [next],
      routes: [toApp({ cluster: next.name, ...retry('5xx') })],
      inject: options.inject ?? false,
      logFlushMs: options.logFlushMs ?? 50,
    });
    next = staticCluster([`127.0.0.1:${envoy.port('http')}`], { name });
    chain.unshift(envoy);
  }
  return chain;
}
