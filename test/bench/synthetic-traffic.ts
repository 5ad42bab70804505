import { reference, struct } from '../support/wire.ts';

/** How much a simulated mesh has. */
export interface MeshSize {
  clusters: number;
  /** Endpoints. */
  perCluster: number;
}

export interface SyntheticEndpoint {
  cluster: string;
  ip: string;
}

/** Upstream connections, whatever the size of the mesh. */
const connections = 10_000;

/** The n-th endpoint, for any n. */
export function endpointAt({ clusters, perCluster }: MeshSize, n: number): SyntheticEndpoint {
  const index = n % (clusters * perCluster);
  const ip = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
  return { cluster: `cluster-${Math.floor(index / perCluster)}`, ip };
}

/** Requests that follow each other. `from`: how many there were before them. */
export interface Requests {
  from: number;
  count: number;
  /** Of the first, epoch ms. */
  startMs: number;
  everyMs: number;
}

/** Both entries of each request, as Envoy writes them into one message. */
export function logMessage(mesh: MeshSize, { from, count, startMs, everyMs }: Requests, identifier?: object): Buffer {
  const log_entry = Array.from({ length: count }, (_, i) => entriesOf(mesh, from + i, startMs + i * everyMs)).flat();
  return reference.logMessage.serialize({ ...(identifier ? { identifier } : {}), http_logs: { log_entry } });
}

/** The n-th request's response headers, as Envoy sends them in profile `full`. */
export function responseHeaders(mesh: MeshSize, n: number, startMs: number): Buffer {
  const { cluster, ip } = endpointAt(mesh, n * stride);
  const header = (key: string, value: string) => ({ key, raw_value: Buffer.from(value) });
  return reference.processingRequest.serialize({
    attributes: {
      'envoy.filters.http.ext_proc': struct({
        'xds.cluster_name': cluster,
        'xds.route_name': 'all',
        'xds.listener_direction': 2,
        'xds.node.id': 'shop-1.default',
        'xds.node.cluster': 'shop',
        'upstream.address': `${ip}:8080`,
        'upstream.request_attempt_count': 1,
        'response.code': 200,
        'response.code_details': 'via_upstream',
        'response.flags': 0,
        'request.time': new Date(startMs).toISOString(),
        'request.method': 'GET',
        'request.path': '/cart',
        'request.host': 'shop.test',
        "request.headers['x-sidelight-key']": `k${n}`,
      }),
    },
    response_headers: {
      headers: {
        headers: [
          header('x-sidelight-internal-connection-id', `${n % connections}`),
          header('x-sidelight-internal-connection-age-us', '60000000'),
        ],
      },
    },
  });
}

/** So that one cluster is not used for ten requests in a row. */
const stride = 31;

function entriesOf(mesh: MeshSize, n: number, startMs: number): object[] {
  const { cluster, ip } = endpointAt(mesh, n * stride);
  const socket = (address: string, port_value: number) => ({ socket_address: { address, port_value } });
  const common = (type: string) => ({
    access_log_type: type,
    start_time: { seconds: Math.floor(startMs / 1000), nanos: Math.round((startMs % 1000) * 1e6) },
    duration: { nanos: 5_000_000 },
    upstream_cluster: cluster,
    upstream_remote_address: socket(ip, 8080),
    downstream_remote_address: socket('10.200.0.1', 40_000),
    custom_tags: {
      key: `k${n}`,
      cluster,
      connection_id: `${n % connections}`,
      connection_age_us: '60000000',
      duration_ms: '5',
      attempt_count: '1',
    },
  });
  const request = { request_method: 'GET', path: '/cart', authority: 'shop.test', scheme: 'http' };
  const response = { response_code: { value: 200 }, response_body_bytes: 300, response_code_details: 'via_upstream' };
  return [
    { common_properties: common('UpstreamEnd'), request, response },
    { common_properties: { ...common('DownstreamEnd'), upstream_request_attempt_count: 1 }, request, response },
  ];
}
