import { stringify } from 'yaml';
import { accessLogs, type FilterConfig, type Json, shippedConfig } from '../../../src/lab/envoy-config.ts';
import { extProc } from '../tagging-scene.ts';

const hcmName = 'envoy.filters.network.http_connection_manager';
const sidelightCluster = 'outbound|50051||sidelight.sidelight.svc.cluster.local';
/**
 * Envoy names the cluster in `:authority` unless told otherwise, and Node's HTTP/2 resets a stream whose authority has a
 * bar in it (PROTOCOL_ERROR): no call would arrive, and no request would tell. test/unit/ingress-authority.test.ts.
 */
const authority = 'sidelight.sidelight';

/** The parts of `envoy/full.yaml`, as EnvoyFilters put them into a sidecar's way out or into a waypoint. */
export function fullProfile(proxy: 'sidecar' | 'waypoint'): string {
  const hcm = shippedManager();
  const ours = (hcm.http_filters ?? []).filter(({ name }) => name.includes('sidelight'));
  const router = (hcm.http_filters ?? []).find(({ name }) => name === 'envoy.filters.http.router');
  const manager = {
    '@type': hcm['@type'],
    early_header_mutation_extensions: hcm['early_header_mutation_extensions'],
    access_log: hcm.access_log,
  };
  const match = proxy === 'sidecar' ? sidecarMatch : waypointMatch;
  const atManager = match({ filter: { name: hcmName } });
  const atRouter = match({ filter: { name: hcmName, subFilter: { name: 'envoy.filters.http.router' } } });
  const configPatches = [
    { applyTo: 'NETWORK_FILTER', match: atManager, patch: { operation: 'MERGE', value: { typed_config: manager } } },
    ...ours.map((value) => ({ applyTo: 'HTTP_FILTER', match: atRouter, patch: { operation: 'INSERT_BEFORE', value } })),
    { applyTo: 'HTTP_FILTER', match: atRouter, patch: { operation: 'MERGE', value: router } },
  ];
  const envoyFilter = {
    apiVersion: 'networking.istio.io/v1alpha3',
    kind: 'EnvoyFilter',
    metadata: proxy === 'sidecar' ? sidecarMetadata : waypointMetadata,
    spec: { ...(proxy === 'sidecar' ? ofClient : ofWaypoint), configPatches },
  };
  return stringify(envoyFilter, { aliasDuplicateObjects: false }).replaceAll(
    /^( *)cluster_name: sidelight$/gm,
    `$1cluster_name: ${sidelightCluster}\n$1authority: ${authority}`,
  );
}

/** As shipped, but for what would make a test slow, or wrong where the machine is busy. */
function shippedManager(): FilterConfig {
  const { listeners } = shippedConfig('full').static_resources;
  const hcm = listeners[0]?.filter_chains[0]?.filters[0]?.typed_config;
  if (hcm === undefined) throw new Error('the shipped config has no connection manager');
  for (const log of accessLogs(hcm)) log.typed_config.common_config['buffer_flush_interval'] = '0.05s';
  const tagger = extProc(hcm);
  tagger['message_timeout'] = '5s';
  // Envoy reads `{ value: true }` for a wrapped bool, too; Istio's generator does not.
  (tagger['mutation_rules'] as Json)['disallow_all'] = true;
  return hcm;
}

const sidecarMetadata = { name: 'sidelight', namespace: 'app' };
/** A waypoint has the clusters of what it serves; any other must be named. */
const waypointMetadata = {
  ...sidecarMetadata,
  annotations: { 'envoyfilter.istio.io/referenced-services': 'sidelight/sidelight.sidelight.svc.cluster.local' },
};
const ofClient = { workloadSelector: { labels: { app: 'client' } } };
const ofWaypoint = { targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'waypoint' }] };

function sidecarMatch(filterChain: Json): Json {
  return { context: 'SIDECAR_OUTBOUND', listener: { filterChain } };
}

/** `main_internal` carries the requests, the other listeners the tunnels. */
function waypointMatch(filterChain: Json): Json {
  return { context: 'SIDECAR_INBOUND', listener: { name: 'main_internal', filterChain } };
}
