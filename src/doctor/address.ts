import { at, isObject, textAt } from './json.ts';

/** `ip:port`, or a pipe's path; of an HBONE endpoint the address inside the tunnel. `''`: none of these. */
export function addressText(address: unknown): string {
  const socket = at(address, 'socket_address');
  if (isObject(socket)) return `${textAt(socket, 'address')}:${Number(socket['port_value'] ?? 0)}`;
  return textAt(address, 'pipe', 'path') || textAt(address, 'envoy_internal_address', 'endpoint_id');
}
