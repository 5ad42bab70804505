import { once } from 'node:events';
import http from 'node:http';
import type net from 'node:net';

/** A host as `/clusters` has it. */
export interface FakeHost {
  address: string;
  port?: number;
  activeConnections?: number;
  further?: readonly string[];
  pendingRemoval?: boolean;
}

/** What a fake Envoy has. */
export interface FakeCluster {
  type?: string;
  hosts: readonly FakeHost[];
  /** Absent: the statistic is not kept. */
  activeConnections?: number;
  /** Ever opened. */
  totalConnections?: number;
  statName?: string;
}

/** An admin interface as Envoy 1.40 has it, as far as it is asked; or whatever else stands at its address. */
export class FakeAdmin {
  nodeId = 'node-1';
  state = 'LIVE';
  uptimeSeconds = 100;
  readonly clusters = new Map<string, FakeCluster>();
  /** Every path and query so far, decoded. */
  readonly asked: string[] = [];
  /** Set: answers instead. */
  instead: ((path: string, response: http.ServerResponse) => void) | undefined;
  /** Called before each answer; it waits for it. */
  onAsked: ((path: string) => void | Promise<void>) | undefined;
  /** As Envoy 1.37: `/clusters` gives all. */
  ignoresFilter = false;
  readonly #server = http.createServer((request, response) => void this.#serve(request.url ?? '', response));
  readonly #sockets = new Set<net.Socket>();

  static async start(port = 0): Promise<FakeAdmin> {
    const admin = new FakeAdmin();
    admin.#server.on('connection', (socket: net.Socket) => {
      admin.#sockets.add(socket);
      socket.once('close', () => admin.#sockets.delete(socket));
    });
    admin.#server.listen(port, '127.0.0.1');
    await once(admin.#server, 'listening');
    return admin;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(url: string, response: http.ServerResponse): Promise<void> {
    response.on('error', () => response.destroy());
    this.asked.push(decodeURIComponent(url));
    if (this.instead !== undefined) {
      this.instead(url, response);
      return;
    }
    const { pathname, searchParams } = new URL(url, this.url);
    await this.onAsked?.(pathname);
    response.end(JSON.stringify(this.#answer(pathname, searchParams)));
  }

  #answer(path: string, query: URLSearchParams): unknown {
    if (path === '/server_info') return { version: 'sha/1.40.0/Clean', state: this.state, node: { id: this.nodeId } };
    if (path === '/runtime') return { entries: {} };
    if (path === '/stats') return { stats: this.#stats(new RegExp(query.get('filter') ?? '')) };
    if (path === '/clusters') {
      const filter = new RegExp(this.ignoresFilter ? '' : (query.get('filter') ?? ''));
      return { cluster_statuses: this.#found(filter).map(([name, cluster]) => status(name, cluster)) };
    }
    return { configs: this.#configs(query.get('resource') ?? '', new RegExp(query.get('name_regex') ?? '')) };
  }

  #found(filter: RegExp): [string, FakeCluster][] {
    return [...this.clusters].filter(([name]) => filter.test(name));
  }

  #stats(filter: RegExp): { name: string; value: number }[] {
    const numbers = [...this.clusters].flatMap(
      ([name, { activeConnections, totalConnections = 0, statName = name }]) =>
        activeConnections === undefined
          ? []
          : [
              { name: `cluster.${statName}.upstream_cx_active`, value: activeConnections },
              { name: `cluster.${statName}.upstream_cx_total`, value: totalConnections },
            ],
    );
    return [{ name: 'server.uptime', value: this.uptimeSeconds }, ...numbers].filter(({ name }) => filter.test(name));
  }

  #configs(resource: string, filter: RegExp): unknown[] {
    const found = this.#found(filter);
    if (resource === 'static_clusters')
      return found.map(([name, { type = 'STATIC' }]) => ({ cluster: { name, type } }));
    if (resource !== 'static_endpoint_configs') return [];
    return found.map(([name, { hosts }]) => ({
      endpoint_config: {
        cluster_name: name,
        endpoints: [{ lb_endpoints: hosts.map((host) => ({ endpoint: endpoint(host) })) }],
      },
    }));
  }
}

function status(name: string, { hosts, statName }: FakeCluster) {
  return {
    name,
    observability_name: statName ?? name,
    host_statuses: hosts.map((host) => ({
      address: address(host.address, host.port),
      stats: [{ name: 'cx_active', ...(host.activeConnections ? { value: String(host.activeConnections) } : {}) }],
      health_status: {
        eds_health_status: 'HEALTHY',
        ...(host.pendingRemoval ? { pending_dynamic_removal: true } : {}),
      },
    })),
  };
}

function endpoint({ address: ip, port, further = [] }: FakeHost) {
  return {
    address: address(ip, port),
    additional_addresses: further.map((another) => ({ address: address(another, port) })),
  };
}

function address(ip: string, port = 80) {
  return { socket_address: { address: ip, port_value: port } };
}
