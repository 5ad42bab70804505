import { staticCluster } from '../../../src/lab/clusters.ts';
import type { Bootstrap, Cluster, Json } from '../../../src/lab/envoy-config.ts';

export interface IstioNode {
  type: 'sidecar' | 'waypoint';
  ip: string;
  /** Its pod is `WORKLOAD-a`, its namespace `app`. */
  workload: string;
  labels: Record<string, string>;
  /** Of Istio: its control plane writes for this version. */
  version: string;
}

/** What a proxy of Istio starts with: a node that tells who it is, a control plane, and whoever hands out certificates. */
export function istioBootstrap(node: IstioNode, control: string, secrets: string): Bootstrap {
  const internalListeners = 'envoy.extensions.bootstrap.internal_listener.v3.InternalListener';
  const ads = { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' };
  return {
    node: nodeOf(node),
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
    layered_runtime: {
      layers: [
        { name: 'lab', static_layer: {} },
        { name: 'admin', admin_layer: {} },
      ],
    },
    dynamic_resources: {
      lds_config: ads,
      cds_config: ads,
      ads_config: {
        api_type: 'GRPC',
        transport_api_version: 'V3',
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: 'xds-grpc' } }],
      },
    },
    bootstrap_extensions: [
      {
        name: 'envoy.bootstrap.internal_listener',
        typed_config: { '@type': `type.googleapis.com/${internalListeners}` },
      },
    ],
    static_resources: { listeners: [], clusters: [grpcCluster('xds-grpc', control), grpcCluster('sds-grpc', secrets)] },
  };
}

/** As istio-agent writes it; the metadata are those that istiod and Sidelight read. */
function nodeOf({ type, ip, workload, labels, version }: IstioNode): Json {
  const [pod, namespace] = [`${workload}-a`, 'app'];
  return {
    id: `${type}~${ip}~${pod}.${namespace}~${namespace}.svc.cluster.local`,
    cluster: `${workload}.${namespace}`,
    metadata: {
      NAME: pod,
      NAMESPACE: namespace,
      WORKLOAD_NAME: workload,
      CLUSTER_ID: 'Kubernetes',
      ISTIO_VERSION: version,
      LABELS: labels,
      INSTANCE_IPS: ip,
      GENERATOR: '',
      // No iptables: a sidecar's listeners bind their ports.
      ...(type === 'sidecar' ? { INTERCEPTION_MODE: 'NONE', DISABLE_HBONE_SEND: 'true' } : {}),
    },
  };
}

function grpcCluster(name: string, address: string): Cluster {
  return staticCluster([address], { name, http2: true, connectTimeoutMs: 1000 });
}
