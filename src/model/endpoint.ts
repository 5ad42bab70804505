/**
 * Where bytes really go. `text` is Envoy's own spelling: `10.0.0.7:8080`, `[::1]:8080`, `/run/app.sock`,
 * `envoy://connect_originate/10.0.0.7:8080`.
 */
export interface Endpoint {
  text: string;
  /** `internal` is an Envoy-internal listener: its ids and ages belong to the inner connection. */
  kind: 'ip' | 'pipe' | 'internal' | 'other';
  /** Canonical IP (v6 in its short form), the part that discovery compares; absent for a pipe. For `internal` the inner address. */
  ip: string | undefined;
  /** 0-65535; absent where there is none. */
  port: number | undefined;
}

/**
 * Whether nothing came back through a tunnel (HBONE). Envoy connects to its own internal listener before the tunnel is
 * made, and whether or not it ever is: the connection's id and age, and how it ended, then say nothing of the endpoint.
 * `code`: absent where no response head came. Envoy 1.40, test/istio/hbone.test.ts.
 */
export function isSilentTunnel({ kind }: Pick<Endpoint, 'kind'>, code: number | undefined): boolean {
  return kind === 'internal' && code === undefined;
}
