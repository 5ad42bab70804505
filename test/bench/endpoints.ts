import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { table } from '../../src/cli/demo/table.ts';
import { auditPins, type Books, openBooks } from '../../src/cli/serve/books.ts';
import { buildIngress, buildRecorder, type Ground } from '../../src/cli/serve/rooms.ts';
import { checkConfig } from '../../src/config/check-config.ts';
import { createClusterRules } from '../../src/config/cluster-rules.ts';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
import type { Discovery } from '../../src/discovery/discovery.ts';
import { createEmit } from '../../src/emit/create-emit.ts';
import { Coverage } from '../../src/flow/coverage.ts';
import type { Recorder } from '../../src/flow/recorder.ts';
import { dieWithUs } from '../../src/lab/cleanup.ts';
import { reporter } from '../support/entries.ts';
import { limits } from '../support/wire.ts';
import { ChurningView } from './churning-view.ts';
import type { Order } from './proxy.ts';
import { logMessage, type MeshSize, type Requests } from './synthetic-traffic.ts';

/*
 * What a request costs with many endpoints that come and go, beside a few that do not: blocks of both in turn, in one
 * process, and the quieter ones of each. Once as profile `full` has it, from the bytes that another process sends
 * by gRPC to the tags and the metrics; and once the recorder alone, from the bytes of the log message on, which shows a
 * change there much sooner.
 */
const warmUpBlocks = 8;
const blocks = 16;
const perBlock = 3000;
/** Requests per simulated second. */
const rate = 1000;
/** Envoy sends a buffer of entries when it is full, or once a second. */
const perMessage = 100;
const everyMs = 1000 / rate;

const few: MeshSize = { clusters: 1, perCluster: 10 };
const many: MeshSize = { clusters: 1000, perCluster: 10 };

/** All that a request meets, under a clock of its own. */
class System {
  readonly #mesh: MeshSize;
  readonly #churn: number;
  readonly #view: ChurningView;
  readonly #books: Books;
  readonly #recorder: Recorder;
  readonly #ground: Ground;
  readonly #rooms: Omit<Parameters<typeof buildIngress>[1], 'touch'>;
  #nowMs = 1_700_000_000_000;
  #sent = 0;

  /** `churn`: the share of the endpoints that leaves each second. */
  constructor(mesh: MeshSize, churn: number) {
    this.#mesh = mesh;
    this.#churn = churn;
    const checked = checkConfig('join: {streamMaxAgeMs: 86400000}');
    if (!checked.ok) throw new Error('the config is wrong');
    const { config } = checked;
    const now = () => this.#nowMs;
    const log = () => undefined;
    this.#view = new ChurningView(mesh, now);
    this.#ground = {
      config,
      rules: createClusterRules(config),
      logger: { error: log, warn: log, info: log, debug: log, close: () => Promise.resolve() },
      env: {},
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
    this.#books = openBooks(this.#ground, emit);
    const discovery = { watch: log, snapshot: () => this.#view.view } as unknown as Discovery;
    const rooms = { discovery, emit, books: this.#books, coverage: new Coverage(10) };
    this.#recorder = buildRecorder(this.#ground, rooms);
    this.#rooms = { ...rooms, recorder: this.#recorder };
  }

  /** The recorder alone: CPU, µs per request. */
  record(): Promise<number> {
    const stream = { id: 1, profile: 'observe' as const, reporter };
    if (this.#sent === 0) this.#recorder.opened(stream);
    // The garbage of those who make the messages would be ours otherwise.
    const messages = Array.from({ length: perBlock / perMessage }, (_, i) => {
      return logMessage(this.#mesh, { ...this.#next(), startMs: this.#nowMs + i * perMessage * everyMs });
    });
    global.gc?.({ type: 'minor' });
    let us = 0;
    for (const [i, bytes] of messages.entries()) {
      us += usOf(() => {
        const decoded = decodeLogMessage(bytes, limits);
        if (!decoded.ok) throw new Error(decoded.error.text);
        this.#recorder.entries(stream, decoded.message.entries, this.#nowMs + perMessage * everyMs);
      });
      us += this.#timePasses(i);
    }
    return Promise.resolve(us / perBlock);
  }

  /** The whole: CPU, µs per request. `send` has requests sent to a port, and resolves when they are tagged and logged. */
  async serve(send: (order: Order) => Promise<void>): Promise<() => Promise<number>> {
    let heard = Promise.withResolvers<void>();
    const ingress = buildIngress(this.#ground, { ...this.#rooms, touch: () => heard.resolve() });
    const port = await ingress.bind('127.0.0.1:0');
    return async () => {
      let us = 0;
      for (let i = 0; i < perBlock / perMessage; i += 1) {
        heard = Promise.withResolvers();
        const sent = send({ port, mesh: this.#mesh, ...this.#next() });
        const before = process.cpuUsage();
        await Promise.all([heard.promise, sent]);
        us += usSince(before) + this.#timePasses(i);
      }
      return us / perBlock;
    };
  }

  #next(): Requests {
    const from = this.#sent;
    this.#sent += perMessage;
    return { from, count: perMessage, startMs: this.#nowMs, everyMs };
  }

  /** CPU of what is done without an entry, µs. What discovery itself does is not counted: here it only changes what is read. */
  #timePasses(message: number): number {
    this.#nowMs += perMessage * everyMs;
    const isNewSecond = message % (rate / perMessage) === 0;
    if (isNewSecond && this.#churn > 0) this.#view.churn(this.#churn, this.#nowMs);
    return usOf(() => {
      if (message % 3 === 0) this.#recorder.advance();
      if (isNewSecond) auditPins(this.#books, this.#recorder, { view: this.#view.view, nowMs: this.#nowMs });
    });
  }
}

function usOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  return usSince(before);
}

function usSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** The lower quartile: what else runs on the machine makes a block dearer, never cheaper. */
function quiet(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN;
}

const proxy = fork(fileURLToPath(new URL('proxy.ts', import.meta.url)));
dieWithUs(proxy);
const send = async (order: Order) => {
  proxy.send(order);
  await once(proxy, 'message');
};
const meshes = [
  { name: '10 endpoints, 1 cluster', mesh: few, churn: 0 },
  { name: '10,000 endpoints, 1,000 clusters, 1 % churn a second', mesh: many, churn: 0.01 },
];
/** Few endpoints first. */
const measured = {
  whole: await Promise.all(meshes.map(({ mesh, churn }) => new System(mesh, churn).serve(send))),
  recorder: meshes.map(({ mesh, churn }) => {
    const system = new System(mesh, churn);
    return () => system.record();
  }),
};
const costs = { whole: meshes.map((): number[] => []), recorder: meshes.map((): number[] => []) };
const memoryMiB: number[] = [];
for (let block = -warmUpBlocks; block < blocks; block += 1) {
  // Each goes first half of the time: the second finds what the first left of the caches and the heap.
  for (const part of ['whole', 'recorder'] as const) {
    for (const index of block % 2 === 0 ? [0, 1] : [1, 0]) {
      const cost = await measured[part][index]?.();
      if (block >= 0 && cost !== undefined) costs[part][index]?.push(cost);
    }
  }
  global.gc?.();
  if (block >= 0) memoryMiB.push(process.memoryUsage().heapUsed / 2 ** 20);
}
proxy.disconnect();

const ratioOf = ([base = [], costly = []]: readonly (readonly number[])[]) => (quiet(costly) / quiet(base)).toFixed(2);
const rows = meshes.map(({ name }, index) => [
  name,
  ...[costs.whole, costs.recorder].map((of) => quiet(of[index] ?? []).toFixed(1)),
]);
rows.push(['ratio', ratioOf(costs.whole), ratioOf(costs.recorder)]);
for (const line of table(['CPU, µs per request', 'profile full (budget 1.1)', 'the recorder alone'], rows))
  console.log(line);
const looks = [1, blocks / 2, blocks];
console.log(`heap after block ${looks.join(', ')}: ${looks.map((at) => memoryMiB[at - 1]?.toFixed(0)).join(', ')} MiB`);
process.exit();
