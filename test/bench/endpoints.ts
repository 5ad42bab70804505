import { table } from '../../src/cli/demo/table.ts';
import { auditPins, type Books, openBooks } from '../../src/cli/serve/books.ts';
import { buildRecorder, type Ground } from '../../src/cli/serve/rooms.ts';
import { checkConfig } from '../../src/config/check-config.ts';
import { createClusterRules } from '../../src/config/cluster-rules.ts';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
import type { Discovery } from '../../src/discovery/discovery.ts';
import { createEmit } from '../../src/emit/create-emit.ts';
import { Coverage } from '../../src/flow/coverage.ts';
import type { Recorder } from '../../src/flow/recorder.ts';
import type { ClusterView, DiscoveryView } from '../../src/model/view.ts';
import { reporter } from '../support/entries.ts';
import { limits, reference } from '../support/wire.ts';

/*
 * What an exchange costs, from the bytes of the log message to the metrics, with many endpoints that come and go, beside
 * a few that do not: blocks of both in turn, in one process, and the median of the blocks' ratios. The gRPC transport is
 * left out: it costs the same, and would make the ratio look better. So would the garbage of those who make the
 * messages: it is collected before the clock runs.
 */
const warmUpBlocks = 4;
const blocks = 24;
const perBlock = 10_000;
/** Exchanges per simulated second. */
const rate = 1000;
/** Envoy sends a buffer when it is full, or once a second. */
const perMessage = 100;
const sizes = [
  { name: '10 endpoints, 1 cluster', clusters: 1, perCluster: 10, churn: 0 },
  { name: '10,000 endpoints, 1,000 clusters, 1 % churn a second', clusters: 1000, perCluster: 10, churn: 0.01 },
] as const;

/** A list whose endpoints come and go, as discovery would show it. */
class ChurningView {
  readonly view: DiscoveryView;
  readonly #views = new Map<string, ClusterView>();
  readonly #addresses: { cluster: string; ip: string }[] = [];
  readonly #away: { cluster: string; ip: string }[][] = [];
  #next = 0;

  constructor({ clusters, perCluster }: (typeof sizes)[number], nowMs: number) {
    for (let c = 0; c < clusters; c += 1) {
      const cluster = `cluster-${c}`;
      const ips = Array.from({ length: perCluster }, (_, i) => addressOf(c * perCluster + i));
      for (const ip of ips) this.#addresses.push({ cluster, ip });
      this.#views.set(cluster, viewOf(cluster, new Map(ips.map((ip) => [ip, nowMs])), new Map(), nowMs));
    }
    const views = this.#views;
    this.view = {
      cluster: (name) => views.get(name),
      clusters: () => [...views.values()],
      proxy: () => undefined,
      proxies: () => [],
    };
  }

  /** The n-th endpoint. */
  endpoint(n: number): { cluster: string; ip: string } {
    return this.#addresses[n % this.#addresses.length] as { cluster: string; ip: string };
  }

  /** This share of the endpoints leaves; those that left three calls ago come back, as pods of a rollout do. */
  churn(share: number, nowMs: number): void {
    const leaving = Array.from({ length: Math.round(this.#addresses.length * share) }, () => {
      this.#next += 7;
      return this.endpoint(this.#next);
    });
    this.#away.push(leaving);
    const returning = this.#away.length > 3 ? (this.#away.shift() ?? []) : [];
    for (const endpoint of leaving) this.#move(endpoint, nowMs);
    for (const endpoint of returning) this.#move(endpoint, nowMs);
  }

  #move({ cluster, ip }: { cluster: string; ip: string }, nowMs: number): void {
    const before = this.#views.get(cluster) as ClusterView;
    const [listed, left] = [new Map(before.listed), new Map(before.left)];
    if (listed.delete(ip)) left.set(ip, nowMs);
    else if (left.delete(ip)) listed.set(ip, nowMs);
    this.#views.set(cluster, viewOf(cluster, listed, left, nowMs));
  }

  answered(nowMs: number): void {
    for (const [cluster, view] of this.#views) this.#views.set(cluster, { ...view, lastAnswerMs: nowMs });
  }
}

/** The recorder with all that it writes into, under a clock of its own. */
class System {
  readonly #options: (typeof sizes)[number];
  readonly #view: ChurningView;
  readonly #books: Books;
  readonly #recorder: Recorder;
  readonly #stream = { id: 1, profile: 'observe' as const, reporter };
  #nowMs = 1_700_000_000_000;
  #sent = 0;

  constructor(options: (typeof sizes)[number]) {
    this.#options = options;
    const checked = checkConfig('log: {level: error}');
    if (!checked.ok) throw new Error('the default config is wrong');
    const { config } = checked;
    const now = () => this.#nowMs;
    this.#view = new ChurningView(options, this.#nowMs - 1000);
    const log = () => undefined;
    const ground: Ground = {
      config,
      rules: createClusterRules(config),
      logger: { error: log, warn: log, info: log, debug: log, close: () => Promise.resolve() },
      now,
      monotonicMs: now,
      random: () => 0.5,
    };
    const emit = createEmit({
      limits: config.limits,
      resource: { version: '0', instanceId: '0' },
      otlp: { ...config.otlp, endpoint: undefined },
      env: {},
      now,
      sampling: { ratio: 0, keptPerSecond: 0, keptBurst: 0, slowMs: () => 1000 },
      sources: {},
      isPinExpected: () => false,
      onExportFailure: log,
    });
    const discovery = { watch: log, snapshot: () => this.#view.view } as unknown as Discovery;
    this.#books = openBooks(ground, emit);
    this.#recorder = buildRecorder(ground, {
      discovery,
      emit,
      books: this.#books,
      coverage: new Coverage(10),
    });
    this.#recorder.opened(this.#stream);
  }

  /** CPU, µs per exchange. */
  run(exchanges: number): number {
    const messages: Buffer[] = [];
    for (let made = 0; made < exchanges; made += perMessage) {
      const log_entry = Array.from({ length: perMessage }, (_, index) => this.#exchange(made + index)).flat();
      messages.push(reference.logMessage.serialize({ http_logs: { log_entry } }));
    }
    global.gc?.({ type: 'minor' });
    const before = process.cpuUsage();
    for (const [index, bytes] of messages.entries()) {
      this.#nowMs += (perMessage / rate) * 1000;
      const decoded = decodeLogMessage(bytes, limits);
      if (!decoded.ok) throw new Error(decoded.error.text);
      this.#recorder.entries(this.#stream, decoded.message.entries, this.#nowMs);
      if (index % 3 === 0) this.#recorder.advance();
      if (index % (rate / perMessage) === 0) this.#second();
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / exchanges;
  }

  /** Discovery's own work is its own bench: here it only changes what is read. */
  #second(): void {
    this.#view.answered(this.#nowMs);
    if (this.#options.churn > 0) this.#view.churn(this.#options.churn, this.#nowMs);
    auditPins(this.#books, this.#recorder, { view: this.#view.view, nowMs: this.#nowMs });
  }

  /** Both entries of one request, as Envoy writes them. `ahead`: how many are made before it is sent. */
  #exchange(ahead: number): object[] {
    const { cluster, ip } = this.#view.endpoint(this.#sent * 31);
    const connection = this.#sent % 10_000;
    this.#sent += 1;
    const startMs = this.#nowMs + (ahead * 1000) / rate;
    const socket = (address: string, port_value: number) => ({ socket_address: { address, port_value } });
    const common = (type: string) => ({
      access_log_type: type,
      start_time: { seconds: Math.floor(startMs / 1000), nanos: (startMs % 1000) * 1e6 },
      duration: { nanos: 5_000_000 },
      upstream_cluster: cluster,
      upstream_remote_address: socket(ip, 8080),
      downstream_remote_address: socket('10.200.0.1', 40_000),
      custom_tags: {
        key: `k${this.#sent}`,
        cluster,
        connection_id: `${connection}`,
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
}

function viewOf(
  cluster: string,
  listed: ReadonlyMap<string, number>,
  left: ReadonlyMap<string, number>,
  nowMs: number,
): ClusterView {
  return {
    cluster,
    source: 'dns',
    subject: `${cluster}.test`,
    firstAnswerMs: nowMs - 3_600_000,
    lastAnswerMs: nowMs,
    staleAfterMs: 60_000,
    graceMs: 10_000,
    sameAsProxy: true,
    listed,
    left,
    changes: { added: 0, removed: 0 },
    lastError: undefined,
  };
}

function addressOf(n: number): string {
  return `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const systems = sizes.map((options) => new System(options));
const costs: number[][] = sizes.map(() => []);
const memoryMiB: number[] = [];
for (let block = -warmUpBlocks; block < blocks; block += 1) {
  // Each goes first half of the time: the second finds what the first left of the caches and the heap.
  const order = [...systems.entries()];
  for (const [index, system] of block % 2 === 0 ? order : order.toReversed()) {
    const cost = system.run(perBlock);
    if (block >= 0) costs[index]?.push(cost);
  }
  global.gc?.();
  if (block >= 0) memoryMiB.push(process.memoryUsage().heapUsed / 2 ** 20);
}
const ratios = (costs[1] ?? []).map((cost, block) => cost / (costs[0]?.[block] ?? Number.NaN));
const rows = sizes.map(({ name }, index) => [name, median(costs[index] ?? []).toFixed(1)]);
for (const line of table(['what is watched', 'µs/exchange'], rows)) console.log(line);
console.log(`ratio ${median(ratios).toFixed(2)} (budget 1.1)`);
const looks = [1, blocks / 2, blocks];
console.log(`heap after block ${looks.join(', ')}: ${looks.map((at) => memoryMiB[at - 1]?.toFixed(0)).join(', ')} MiB`);
