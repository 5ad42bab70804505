import type { ClusterView, DiscoveryView } from '../../src/model/view.ts';
import { endpointAt, type MeshSize, type SyntheticEndpoint } from './synthetic-traffic.ts';

/** A list whose endpoints come and go, as discovery would show it: answered anew at each moment. */
export class ChurningView {
  readonly view: DiscoveryView;
  readonly #mesh: MeshSize;
  readonly #now: () => number;
  readonly #views = new Map<string, ClusterView>();
  readonly #away: SyntheticEndpoint[][] = [];
  #next = 0;

  constructor(mesh: MeshSize, now: () => number) {
    this.#mesh = mesh;
    this.#now = now;
    const nowMs = now();
    const { clusters, perCluster } = mesh;
    for (let first = 0; first < clusters * perCluster; first += perCluster) {
      const { cluster } = endpointAt(mesh, first);
      const ips = Array.from({ length: perCluster }, (_, index) => endpointAt(mesh, first + index).ip);
      this.#views.set(cluster, this.#viewOf(cluster, new Map(ips.map((ip) => [ip, nowMs])), new Map()));
    }
    const views = this.#views;
    this.view = {
      cluster: (name) => views.get(name),
      clusters: () => [...views.values()],
      proxy: () => undefined,
      proxies: () => [],
    };
  }

  /** This share of the endpoints leaves; those that left three calls ago come back, as pods of a rollout do. */
  churn(share: number, nowMs: number): void {
    const { clusters, perCluster } = this.#mesh;
    const leaving = Array.from({ length: Math.round(clusters * perCluster * share) }, () => {
      this.#next += 7;
      return endpointAt(this.#mesh, this.#next);
    });
    this.#away.push(leaving);
    const returning = this.#away.length > 3 ? (this.#away.shift() ?? []) : [];
    for (const endpoint of leaving) this.#move(endpoint, nowMs);
    for (const endpoint of returning) this.#move(endpoint, nowMs);
  }

  #move({ cluster, ip }: SyntheticEndpoint, nowMs: number): void {
    const before = this.#views.get(cluster) as ClusterView;
    const [listed, left] = [new Map(before.listed), new Map(before.left)];
    if (listed.delete(ip)) left.set(ip, nowMs);
    else if (left.delete(ip)) listed.set(ip, nowMs);
    this.#views.set(cluster, this.#viewOf(cluster, listed, left));
  }

  #viewOf(cluster: string, listed: ReadonlyMap<string, number>, left: ReadonlyMap<string, number>): ClusterView {
    const now = this.#now;
    return {
      cluster,
      source: 'dns',
      subject: `${cluster}.test`,
      firstAnswerMs: 0,
      get lastAnswerMs() {
        return now();
      },
      staleAfterMs: 60_000,
      graceMs: 10_000,
      sameAsProxy: true,
      listed,
      left,
      changes: { added: 0, removed: 0 },
      lastError: undefined,
    };
  }
}
