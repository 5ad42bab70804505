import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
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
 * A process for one mesh, as endpoints.ts starts it: each time it is told to, it has a block of requests and answers
 * what one of them cost, in CPU, and how much memory the process holds.
 */

/** What is measured: `full` from gRPC to the metrics, as that profile has it; `recorder` from the log message's bytes on. */
export type Part = 'full' | 'recorder';

export interface MeshOptions extends MeshSize {
  part: Part;
  /** The share of the endpoints that leaves each second. */
  churn: number;
}

export interface BlockCost {
  /** CPU per request. */
  us: number;
  /** After a collection. */
  heapMiB: number;
}

const perBlock: Record<Part, number> = { full: 3000, recorder: 10_000 };
/** Requests per simulated second. */
const rate = 1000;
/** Envoy sends a buffer of entries when it is full, or once a second. */
const perMessage = 100;
const everyMs = 1000 / rate;

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
    const messages = Array.from({ length: perBlock.recorder / perMessage }, (_, i) => {
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
    return Promise.resolve(us / perBlock.recorder);
  }

  /** The whole: CPU, µs per request. `send` has requests sent to a port, and resolves when they are tagged and logged. */
  async serve(send: (order: Order) => Promise<void>): Promise<() => Promise<number>> {
    let heard = Promise.withResolvers<void>();
    const ingress = buildIngress(this.#ground, { ...this.#rooms, touch: () => heard.resolve() });
    const port = await ingress.bind('127.0.0.1:0');
    return async () => {
      let us = 0;
      for (let i = 0; i < perBlock.full / perMessage; i += 1) {
        heard = Promise.withResolvers();
        const sent = send({ port, mesh: this.#mesh, ...this.#next() });
        const before = process.cpuUsage();
        await Promise.all([heard.promise, sent]);
        us += usSince(before) + this.#timePasses(i);
      }
      return us / perBlock.full;
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

async function blockOf(options: MeshOptions): Promise<() => Promise<number>> {
  const system = new System(options, options.churn);
  if (options.part === 'recorder') return () => system.record();
  const proxy = fork(fileURLToPath(new URL('proxy.ts', import.meta.url)));
  dieWithUs(proxy);
  return system.serve(async (order) => {
    proxy.send(order);
    await once(proxy, 'message');
  });
}

const block = await blockOf(JSON.parse(process.argv[2] ?? '') as MeshOptions);
async function answer(): Promise<void> {
  const us = await block();
  global.gc?.();
  process.send?.({ us, heapMiB: process.memoryUsage().heapUsed / 2 ** 20 } satisfies BlockCost);
}
process.on('message', () => void answer());
process.on('disconnect', () => process.exit());
