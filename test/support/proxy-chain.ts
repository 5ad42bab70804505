import type { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { retry, toApp } from '../fixtures/cases/parts.ts';
import { type LoggingEnvoy, startLoggingEnvoy } from './tagging-scene.ts';

/** The workloads of the chain, in the order in which a request passes them. */
export const layers = ['edge', 'middle', 'inner'] as const;

export interface Proxy {
  workload: string;
  /** Its node's id; absent: one of a plain Envoy. */
  nodeId?: string;
  /** What it calls the next one. */
  cluster: string;
}

const plain: readonly Proxy[] = [
  { workload: 'edge', cluster: 'middle' },
  { workload: 'middle', cluster: 'inner' },
  { workload: 'inner', cluster: 'backend' },
];

/** The three of one call in Istio: the client's sidecar, a waypoint, the server's sidecar. */
export const mesh: readonly Proxy[] = [
  { workload: 'shop', nodeId: istioId('sidecar', 'shop-1'), cluster: 'outbound|8080||cart.store.svc.cluster.local' },
  {
    workload: 'way',
    nodeId: istioId('waypoint', 'way-1'),
    cluster: 'inbound-vip|8080|http|cart.store.svc.cluster.local',
  },
  { workload: 'cart', nodeId: istioId('sidecar', 'cart-1'), cluster: 'inbound|8080||' },
];

/** A proxy's node id as istiod makes it. */
export function istioId(type: 'sidecar' | 'waypoint', pod: string): string {
  return `${type}~127.0.0.1~${pod}.store~store.svc.cluster.local`;
}

export interface ChainOptions {
  /** Where each proxy reports to, by its place. */
  sidelightPorts: readonly [number, number, number];
  /** Where the last one sends to, `ip:port`. */
  backend: string;
  /** Plain ones, `layers`, unless told otherwise. */
  proxies?: readonly Proxy[];
  /** More of Envoy's `RouteAction` at each; two retries on any failure unless told otherwise. */
  route?: Json;
  /** The same of the outermost alone; as `route` unless told otherwise. */
  firstRoute?: Json;
  /** How long each keeps log entries back, ms; 50 unless told otherwise. */
  logFlushMs?: number;
  /** The tagger of each sets `traceparent`. */
  inject?: boolean;
}

/** Real Envoys in a row on the shipped config, the outermost first. */
export async function startChain(cleanup: Cleanup, options: ChainOptions): Promise<LoggingEnvoy[]> {
  const { proxies = plain, route = retry('5xx'), inject = false, logFlushMs = 50 } = options;
  const { firstRoute = route } = options;
  const chain: LoggingEnvoy[] = [];
  let address = options.backend;
  for (const [index, { workload, nodeId, cluster }] of [...proxies.entries()].toReversed()) {
    const envoy = await startLoggingEnvoy(cleanup, workload, {
      base: 'full',
      sidelightPort: options.sidelightPorts[index] ?? 0,
      clusters: [staticCluster([address], { name: cluster })],
      routes: [toApp({ cluster, ...(index === 0 ? firstRoute : route) })],
      inject,
      logFlushMs,
      adapt: (_, config) => {
        config['node'] = { id: nodeId ?? `${workload}-1`, cluster: workload };
      },
    });
    address = `127.0.0.1:${envoy.port('http')}`;
    chain.unshift(envoy);
  }
  return chain;
}
