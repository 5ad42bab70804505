import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { at, type JsonObject, listAt, numberAt, objectAt } from '../json.ts';
import { addressesOf, clusterNamed, clusterStat, hostsOf, type Proxy } from '../proxy.ts';

const protocolOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

/** The clusters that what is ours sends to. */
export function checkOurClusters(proxy: Proxy): ProxyFinding[] {
  return proxy.ourClusters.flatMap((name) => {
    const where = `cluster ${name}`;
    const cluster = clusterNamed(proxy, name);
    if (cluster === undefined && proxy.config.isPartial) return [];
    if (cluster === undefined) {
      return [
        finding('cluster-missing', { where, evidence: `none of ${proxy.config.clusters.length} clusters is it` }),
      ];
    }
    return [
      ...hosts(proxy, name),
      ...findingIf(!speaksHttp2(cluster), 'cluster-not-http2', {
        where,
        evidence: 'no http2_protocol_options in typed_extension_protocol_options',
      }),
      ...bounds(proxy, name, cluster),
    ];
  });
}

function hosts(proxy: Proxy, name: string): ProxyFinding[] {
  const where = `cluster ${name}`;
  const total = clusterStat(proxy, name, 'membership_total');
  const listed = hostsOf(proxy, name);
  // Without `/clusters` and statistics only a dump with endpoints knows.
  const isEmpty = listed?.length === 0 || total === 0 || proxy.config.endpoints.get(name)?.length === 0;
  if (isEmpty && !(listed !== undefined && listed.length > 0)) {
    return [
      finding('cluster-empty', { where, evidence: total === undefined ? '0 hosts' : `membership_total: ${total}` }),
    ];
  }
  const healthy = clusterStat(proxy, name, 'membership_healthy');
  const count = listed?.length ?? total;
  if ((listed !== undefined && listed.every((host) => !host.healthy)) || healthy === 0) {
    return [
      finding('cluster-unreachable', {
        where,
        evidence: `0 of ${count} healthy: ${addressesOf(proxy, name).join(', ')}`,
      }),
    ];
  }
  const isRefused = listed?.every(
    ({ stats }) => (stats.get('cx_connect_fail') ?? 0) > 0 && stats.get('cx_active') === 0,
  );
  return findingIf(isRefused === true, 'cluster-unreachable', {
    where,
    evidence: `cx_connect_fail: ${listed?.map(({ address, stats }) => `${address} ${stats.get('cx_connect_fail')}`).join(', ')}; cx_active: 0`,
  });
}

function speaksHttp2(cluster: JsonObject): boolean {
  const options = at(cluster, 'typed_extension_protocol_options', protocolOptions);
  const ways = ['explicit_http_config', 'use_downstream_protocol_config', 'auto_config'];
  return (
    ways.some((way) => at(options, way, 'http2_protocol_options') !== undefined) ||
    cluster['http2_protocol_options'] !== undefined
  );
}

/** What keeps a service that hangs from costing every request its timeout. The log waits for nobody. */
function bounds({ attached }: Proxy, name: string, cluster: JsonObject): ProxyFinding[] {
  const isInPath = attached.some(
    (chain) => chain.kind === 'http' && chain.extProcs.some((one) => one.cluster === name),
  );
  const panic = objectAt(cluster, 'common_lb_config')['healthy_panic_threshold'];
  const missing = [
    ...(listAt(cluster, 'health_checks').length === 0 ? ['no health_checks'] : []),
    ...(panic === undefined || numberAt(panic, 'value') > 0
      ? [`healthy_panic_threshold: ${panic === undefined ? 'the default, 50 %' : numberAt(panic, 'value')}`]
      : []),
  ];
  return findingIf(isInPath && missing.length > 0, 'cluster-unbounded', {
    where: `cluster ${name}`,
    evidence: missing.join('; '),
  });
}
