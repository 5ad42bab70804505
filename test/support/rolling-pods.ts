import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ConfigInput } from '../../src/config/schema.ts';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import { assignment, type Json } from '../../src/lab/envoy-config.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import type { KubernetesApi } from './kubernetes-api.ts';
import { podIp, startLoopbackSlices } from './loopback-slices.ts';
import { clusterOf, endpointOf, eventsOf, pinsOf, type ReporterOptions, routeTo, startReporter } from './reporting.ts';
import { startTestSidelight } from './sidelight.ts';
import { type SlicePod, sliceOf } from './slices.ts';
import { until } from './until.ts';

export const namespace = 'shop';

export interface RollingPodsOptions {
  /** The Service in namespace `shop`; also the cluster and the node, unless these have other names. */
  name: string;
  cluster?: string;
  nodeId?: string;
  /** Every address that a pod will have. */
  ips: string[];
  first: SlicePod[];
  graceMs: number;
  config?: ConfigInput;
  /** More of the cluster, and of the route's action. */
  extra?: Json;
  action?: Json;
  reporter?: Partial<ReporterOptions>;
}

/** A Service whose pods come and go: its slices in the API server, and an Envoy that gets the same by EDS from a file. */
export async function setUpRollingPods(cleanup: Cleanup, api: KubernetesApi, options: RollingPodsOptions) {
  const {
    name,
    cluster = name,
    nodeId = name,
    ips,
    first,
    graceMs,
    config = {},
    extra = {},
    action = {},
    reporter = {},
  } = options;
  const upstreams = cleanup.use(await Upstreams.start({ ips }));
  const file = path.join(cleanup.use(tempDir()).path, 'eds.json');
  const tellEnvoy = (pods: readonly SlicePod[]) => {
    const ready = pods.filter((pod) => pod.ready !== false && pod.terminating !== true);
    const resource = {
      '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
      ...assignment(
        cluster,
        ready.map(({ ip }) => `${ip}:${upstreams.port}`),
      ),
    };
    // Envoy looks again when a file is moved there.
    writeFileSync(`${file}.new`, JSON.stringify({ version_info: `${Date.now()}`, resources: [resource] }));
    renameSync(`${file}.new`, file);
  };
  const tellKubernetes = async (pods: readonly SlicePod[]) =>
    void (await api.admin.apply(
      sliceOf(
        { namespace, service: name },
        pods.map((pod) => ({ ...pod, ip: podIp(pod.ip) })),
      ),
    ));
  /** The API server knows first, the Envoy hears of it a little later. */
  const set = async (...pods: SlicePod[]) => {
    await tellKubernetes(pods);
    tellEnvoy(pods);
  };
  await set(...first);
  const { kubeconfig } = await startLoopbackSlices(cleanup, api);
  const sidelight = cleanup.use(
    await startTestSidelight({
      ...config,
      clusters: [{ match: cluster, graceMs, ...(cluster === name && { service: `${namespace}/${name}` }) }],
      discovery: {
        kubernetes: {
          enabled: true,
          kubeconfig,
          watchMs: 2000,
          timeoutMs: 1000,
          staleAfterMs: 5000,
        },
        dns: { enabled: false },
      },
      pins: { quietMs: 2000 },
    }),
  );
  const envoy = await startReporter(cleanup, nodeId, {
    sidelightPort: sidelight.grpcPort,
    clusters: [
      {
        name: cluster,
        type: 'EDS',
        connect_timeout: '0.25s',
        eds_cluster_config: { eds_config: { resource_api_version: 'V3', path_config_source: { path: file } } },
        ...extra,
      },
    ],
    routes: [routeTo(cluster, undefined, action)],
    ...reporter,
  });
  const own = (labels: Record<string, string>) => ({ cluster, ...labels });
  return {
    envoy,
    upstreams,
    sidelight,
    set,
    tellEnvoy,
    tellKubernetes,
    requests: (pin: string) => sidelight.metric('sidelight_pinned_requests_total', own({ pin })),
    connections: (pin: string) => sidelight.metric('sidelight_pins', own({ pin })),
    pinEvents: (event: string) => sidelight.metric('sidelight_pin_events_total', own({ event })),
    events: (event: string) => eventsOf(sidelight, event, cluster),
    pins: () => pinsOf(sidelight, cluster),
    cluster: () => clusterOf(sidelight, cluster),
    endpoint: (ip: string) => endpointOf(sidelight, cluster, `${ip}:${upstreams.port}`),
    listedByEnvoy: async () => (await envoy.admin.hosts(cluster)).map(({ address }) => address.split(':')[0]),
    untilCurrent: async () =>
      until(
        `current requests of ${name}`,
        async () => (await sidelight.metric('sidelight_pinned_requests_total', own({ pin: 'current' }))) > 0,
      ),
  };
}
