import { type DrainFacts, type DrainVerdict, type Gap, type ReplicaFacts } from '../../judge/drain-facts.ts';
import { judgeDrained } from '../../judge/drained.ts';
import type { Address } from './ask.ts';
import {
  endpointsThatLeft,
  type MergedEndpoint,
  mergeEndpoints,
  mergeExpected,
  mergeReporters,
  type Told,
} from './merge.ts';
import {
  type AskReplicasOptions,
  askClosed,
  askClusters,
  askReplicas,
  type ReplicaAnswer,
  type ReplicaWord,
} from './replicas.ts';
import { remembered, type SeenEndpoint, type Snapshot } from './snapshot.ts';

export interface ObserverOptions extends AskReplicasOptions {
  quietForMs: number;
  ignored: readonly string[];
}

/** The facts of one moment, with what is only shown. */
export interface ObservedFacts extends DrainFacts {
  endpoints: readonly MergedEndpoint[];
}

/** A replica that answered before. */
interface Known {
  address: Address;
  last: ReplicaWord;
  /** Starts of earlier processes there. */
  earlier: Set<number>;
}

type Silence = Omit<Gap, 'endedMs'> & { sinceMs: number };

/** A log stream that is balanced anew is away for a moment only, and Envoy keeps its entries. */
const shortestGapMs = 5000;
const mostGaps = 1000;

/** Asks the replicas again and again, and forgets nothing that it once heard: a replica may restart or leave. */
export class Observer {
  readonly #options: ObserverOptions;
  readonly #known = new Map<string, Known>();
  /** Heard from processes that are gone. */
  #memory: readonly SeenEndpoint[] = [];
  #gaps: Gap[] = [];
  /** Who is silent now. */
  #silent = new Map<string, Silence>();

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  /** One round of questions. Never rejects. */
  async observe(signal: AbortSignal): Promise<ObservedFacts> {
    const { now, target, quietForMs, ignored } = this.#options;
    const before = Array.from(this.#known.values(), ({ address }) => address);
    const answers = await askReplicas(this.#options, before, signal);
    const replicas = answers.flatMap((answer) => this.#take(answer));
    const answering = new Set(replicas.filter(({ problem }) => problem === undefined).map(({ name }) => name));
    const good = [...this.#known].filter(([name]) => answering.has(name));
    const addresses = good.map(([, { address }]) => address);
    const told = this.#told(answering);
    // Only then can another replica know the end of what one holds.
    const mayHaveMoved = addresses.length > 1 || told.some(({ replica }) => replica === undefined);
    const closed = mayHaveMoved ? await askClosed(addresses, this.#options, signal) : [];
    const merged = mergeEndpoints(told, closed);
    const asked = target.kind === 'host' ? endpointsThatLeft(merged) : merged;
    const isUnclear = asked.length === 0 || asked.some(({ state }) => state === 'unknown');
    const name = isUnclear ? await askClusters(addresses, this.#options, signal) : undefined;
    const snapshots = good.map(([, { last }]) => last.snapshot);
    const reporters = mergeReporters(snapshots.flatMap((snapshot) => snapshot.reporters));
    const facts = {
      nowMs: now(),
      quietForMs,
      ignored,
      replicas,
      endpoints: asked.map((one) => ({ ...one, sourceError: name?.errors.get(one.cluster) })),
      nameIsKnown: name?.isKnown === true,
      reporters,
      expected: mergeExpected(snapshots, reporters),
    };
    this.#heed(judgeDrained({ ...facts, gaps: [] }), facts.nowMs);
    return { ...facts, gaps: this.#gaps };
  }

  /** Who was silent for long did not tell of that time. */
  #heed({ blind }: DrainVerdict, nowMs: number): void {
    const silent = new Map<string, Silence>();
    for (const { reason, subject } of blind) {
      if (reason !== 'no_reporter' && reason !== 'reporter_silent') continue;
      const key = `${reason} ${subject}`;
      silent.set(key, this.#silent.get(key) ?? { reason, subject, sinceMs: nowMs });
    }
    for (const [key, { sinceMs, ...gap }] of this.#silent)
      if (!silent.has(key) && nowMs - sinceMs >= shortestGapMs) this.#gaps.push({ ...gap, endedMs: nowMs });
    this.#silent = silent;
    // None is forgotten while it could matter: nothing reaches beyond the latest.
    this.#gaps = this.#gaps.slice(-mostGaps);
  }

  #take({ address, name, isNamed, asked }: ReplicaAnswer): ReplicaFacts[] {
    const known = this.#known.get(name);
    if (!asked.ok) {
      if (isNamed) return [{ name, problem: asked, startedMs: undefined, truncated: false }];
      this.#gone(name, known);
      return [];
    }
    const { snapshot, started } = asked.value;
    const earlier = known?.earlier ?? new Set();
    if (known !== undefined && known.last.started !== started) {
      earlier.add(known.last.started);
      this.#remember(known.last.snapshot);
    }
    this.#known.set(name, { address, last: asked.value, earlier });
    const { startedMs, truncated } = snapshot;
    if (!earlier.has(started)) return [{ name, problem: undefined, startedMs, truncated }];
    const detail = 'different replicas answer by turns: name each, or a headless Service';
    return [{ name, problem: { reason: 'answer_invalid', detail }, startedMs, truncated }];
  }

  /** Its pod was deleted: what it heard last is lost. */
  #gone(name: string, known: Known | undefined): void {
    if (known === undefined) return;
    this.#known.delete(name);
    this.#remember(known.last.snapshot);
    this.#gaps.push({ reason: 'replica_unreachable', subject: name, endedMs: this.#options.now() });
  }

  #remember(snapshot: Snapshot): void {
    const told = [...this.#memory, ...remembered(snapshot)].map((seen) => ({ replica: undefined, seen }));
    this.#memory = mergeEndpoints(told);
  }

  #told(answering: ReadonlySet<string>): Told[] {
    const current = [...this.#known].flatMap(([name, { last }]) => {
      const isAnswering = answering.has(name);
      const endpoints = isAnswering ? last.snapshot.endpoints : remembered(last.snapshot);
      return endpoints.map((seen) => ({ replica: isAnswering ? name : undefined, seen }));
    });
    return [...current, ...this.#memory.map((seen) => ({ replica: undefined, seen }))];
  }
}
