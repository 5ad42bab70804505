import { findTyped, isObject, type JsonObject } from '../json.ts';

/** Every `cluster_name` that something in a value sends to. */
export function clusterNamesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(clusterNamesIn);
  if (!isObject(value)) return [];
  const { cluster_name: name } = value;
  const below = Object.values(value).flatMap(clusterNamesIn);
  return typeof name === 'string' ? [name, ...below] : below;
}

/** What in a value calls a service for each request: ext_proc, or a gRPC access log. */
export function callersIn(value: JsonObject): JsonObject[] {
  return ['ExternalProcessor', 'HttpGrpcAccessLogConfig', 'TcpGrpcAccessLogConfig'].flatMap((type) =>
    findTyped(value, type),
  );
}
