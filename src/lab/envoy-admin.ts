import { setTimeout as sleep } from 'node:timers/promises';

/** One host of `/clusters?format=json`, with its statistics by name. */
export interface AdminHost {
  address: string;
  stats: ReadonlyMap<string, number>;
  healthy: boolean;
}

interface ClustersAnswer {
  cluster_statuses?: {
    name: string;
    host_statuses?: {
      address: { socket_address?: { address: string; port_value: number } };
      stats?: { name: string; value?: string }[];
      health_status?: { eds_health_status?: string; failed_active_health_check?: boolean };
    }[];
  }[];
}

/** Envoy's admin interface on loopback. Every method throws when Envoy does not answer with 200. */
export class EnvoyAdmin {
  readonly port: number;

  constructor(port: number) {
    this.port = port;
  }

  async get(path: string): Promise<string> {
    return this.#text('GET', path);
  }

  async post(path: string): Promise<string> {
    return this.#text('POST', path);
  }

  async json<T>(path: string): Promise<T> {
    return JSON.parse(await this.get(path)) as T;
  }

  /** Counters and gauges whose names match the RE2 pattern; histograms are left out. */
  async stats(pattern = ''): Promise<Map<string, number>> {
    const { stats } = await this.json<{ stats: { name?: string; value?: number }[] }>(
      `/stats?format=json&filter=${encodeURIComponent(pattern)}`,
    );
    const numbers = new Map<string, number>();
    for (const { name, value } of stats) if (name !== undefined && typeof value === 'number') numbers.set(name, value);
    return numbers;
  }

  /** One counter or gauge; 0 where Envoy has not made it yet. */
  async stat(name: string): Promise<number> {
    const pattern = `^${name.replaceAll('.', '\\.')}$`;
    return (await this.stats(pattern)).get(name) ?? 0;
  }

  /** The hosts that Envoy lists for a cluster, as `ip:port`. */
  async hosts(cluster: string): Promise<AdminHost[]> {
    const answer = await this.json<ClustersAnswer>('/clusters?format=json');
    const found = answer.cluster_statuses?.find((status) => status.name === cluster);
    return (found?.host_statuses ?? []).map((host) => ({
      address: `${host.address.socket_address?.address}:${host.address.socket_address?.port_value}`,
      stats: new Map((host.stats ?? []).map(({ name, value }) => [name, Number(value ?? 0)])),
      healthy: host.health_status?.failed_active_health_check !== true,
    }));
  }

  async configDump(query = ''): Promise<unknown> {
    return this.json(`/config_dump${query}`);
  }

  /** Sets runtime keys; needs an admin layer in the bootstrap, which `labConfig` adds. */
  async setRuntime(values: Readonly<Record<string, string>>): Promise<void> {
    await this.post(`/runtime_modify?${new URLSearchParams(values).toString()}`);
  }

  /** Waits until a counter or gauge satisfies the test; throws after `timeoutMs` with its last value. */
  async waitForStat(name: string, test: (value: number) => boolean, timeoutMs = 10_000): Promise<number> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const value = await this.stat(name);
      if (test(value)) return value;
      if (performance.now() > deadline) throw new Error(`${name} is still ${value} after ${timeoutMs} ms`);
      await sleep(20);
    }
  }

  async #text(method: 'GET' | 'POST', path: string): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      signal: AbortSignal.timeout(5_000),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`Envoy admin ${method} ${path}: ${response.status} ${text.trim()}`);
    return text;
  }
}
