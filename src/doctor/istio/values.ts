import { parseIstioCluster } from '../../model/cluster-name.ts';
import { findTyped, isObject, type JsonObject } from '../json.ts';

/** Every `cluster_name` that something in a value sends to. */
export function clusterNamesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(clusterNamesIn);
  if (!isObject(value)) return [];
  const { cluster_name: name } = value;
  const below = Object.values(value).flatMap(clusterNamesIn);
  return typeof name === 'string' ? [name, ...below] : below;
}

/** The hosts of the mesh's services that something in a value sends to, each once. */
export function calledHosts(value: unknown): string[] {
  const clusters = clusterNamesIn(value).map(parseIstioCluster);
  return [...new Set(clusters.flatMap((cluster) => (cluster?.direction === 'outbound' ? (cluster.fqdn ?? []) : [])))];
}

/** The name and namespace of a Kubernetes Service, by its host; `undefined`: it is none's. */
export function serviceOfHost(host: string): { name: string; namespace: string } | undefined {
  const [, name, namespace] = /^([^.]+)\.([^.]+)\.svc\./.exec(host) ?? [];
  return name === undefined || namespace === undefined ? undefined : { name, namespace };
}

/** What in a value calls a service for each request: ext_proc, or a gRPC access log. */
export function callersIn(value: JsonObject): JsonObject[] {
  return ['ExternalProcessor', 'HttpGrpcAccessLogConfig', 'TcpGrpcAccessLogConfig'].flatMap((type) =>
    findTyped(value, type),
  );
}
