import { setTimeout as sleep } from 'node:timers/promises';
import { type DrainVerdict } from '../../judge/drain-facts.ts';
import { judgeDrained } from '../../judge/drained.ts';
import type { Surroundings } from '../serve/serve.ts';
import { signalCode } from '../signal-code.ts';
import { type Resolve, systemResolve } from './addresses.ts';
import { type Decision, decide, isBlindForGood, wrongArguments } from './decide.ts';
import { Observer } from './observer.ts';
import { type DrainedFlags, type DrainedOptions, parseDrained } from './options.ts';
import { type End, endText, type Moment, progress } from './report.ts';
import { endJson } from './report-json.ts';

export type DrainedSurroundings = Pick<Surroundings, 'now' | 'monotonicMs' | 'out' | 'err' | 'stopped'> & {
  /** Absent: as the system does. */
  resolve?: Resolve;
};

/** Without news a line is repeated this often, ms. */
const repeatMs = 10_000;
const longestPauseMs = 2000;
/** How long one answer of one replica may take, ms; not much longer than the whole. */
const answerMs = { least: 500, most: 5000 };
const answerBytes = 16 << 20;
/** Good news is asked for so often: behind one address there may be several replicas, one of which knows worse. */
const confirmations = 8;

/** Waits until an endpoint is drained, or it is clear that this cannot be said. The exit code: see `exitCodes`. */
export async function drained(target: string, flags: DrainedFlags, around: DrainedSurroundings): Promise<number> {
  const parsed = parseDrained(target, flags);
  if (!parsed.ok) {
    around.err(parsed.problems.map((problem) => `sidelight drained: ${problem}`).join('\n'));
    return wrongArguments;
  }
  const end = await watch(parsed.options, around);
  around.out(parsed.options.json ? JSON.stringify(endJson(end)) : endText(end));
  return end.exitCode;
}

async function watch(options: DrainedOptions, around: DrainedSurroundings): Promise<End> {
  // Ages must not jump when this machine's clock is set.
  const [epochMs, zeroMs] = [around.now(), around.monotonicMs()];
  const now = () => Math.round(epochMs + around.monotonicMs() - zeroMs);
  const deadlineMs = epochMs + options.timeoutMs;
  const ending = new AbortController();
  let signal = '';
  const awaitSignal = async () => {
    signal = await around.stopped();
    ending.abort();
  };
  void awaitSignal();
  const observer = observerOf(options, around, now);
  const teller = new Teller(options, around, now);
  let moment: Moment = notAsked(options, epochMs);
  let blindSinceMs: number | undefined;
  let mayBeOpenSinceMs: number | undefined;
  let confirmed = 0;
  const ended = (decision: Decision): End => ({ ...moment, ...decision, options, waitedMs: now() - epochMs });
  while (!ending.signal.aborted) {
    const facts = await observer.observe(ending.signal);
    if (ending.signal.aborted) break;
    const verdict = judgeDrained(facts);
    moment = { facts, verdict };
    confirmed = verdict.state === 'drained' ? confirmed + 1 : 0;
    if (confirmed > 0 && confirmed < confirmations) continue;
    const nowMs = now();
    blindSinceMs = isBlindForGood(verdict, deadlineMs) ? (blindSinceMs ?? nowMs) : undefined;
    mayBeOpenSinceMs = verdict.state === 'may_be_open' ? (mayBeOpenSinceMs ?? nowMs) : undefined;
    const { quietForMs } = options;
    const decision = decide(verdict, { nowMs, deadlineMs, quietForMs, blindSinceMs, mayBeOpenSinceMs });
    if (decision !== undefined) return ended(decision);
    teller.tell(moment);
    await sleep(pauseMs(options.quietForMs, deadlineMs - nowMs), undefined, { signal: ending.signal }).catch(() => {});
  }
  return ended({ exitCode: signalCode(signal), endedBy: signal });
}

function observerOf(
  options: DrainedOptions,
  { resolve = systemResolve }: DrainedSurroundings,
  now: () => number,
): Observer {
  const timeoutMs = Math.min(answerMs.most, Math.max(answerMs.least, options.timeoutMs));
  return new Observer({ ...options, now, resolve, timeoutMs, maxBytes: answerBytes });
}

/** A tenth of the quiet time, two seconds at most; the last one ends with the timeout. */
function pauseMs(quietForMs: number, leftMs: number): number {
  return Math.max(0, Math.min(Math.max(quietForMs / 10, 50), longestPauseMs, leftMs));
}

/** Says on stderr how it stands, when that changes, or now and then. */
class Teller {
  readonly #options: DrainedOptions;
  readonly #around: DrainedSurroundings;
  readonly #now: () => number;
  #told = { key: '', atMs: Number.NEGATIVE_INFINITY };

  constructor(options: DrainedOptions, around: DrainedSurroundings, now: () => number) {
    this.#options = options;
    this.#around = around;
    this.#now = now;
  }

  tell(moment: Moment): void {
    const { key, line } = progress(moment, this.#options);
    const atMs = this.#now();
    if (key === this.#told.key && atMs - this.#told.atMs < repeatMs) return;
    this.#told = { key, atMs };
    this.#around.err(line);
  }
}

/** What can be said before the first answer. */
function notAsked({ quietForMs, ignored }: DrainedOptions, nowMs: number): Moment {
  const facts = {
    nowMs,
    quietForMs,
    ignored,
    replicas: [],
    endpoints: [],
    nameIsKnown: false,
    reporters: [],
    expected: undefined,
    gaps: [],
  };
  return { facts, verdict: judgeDrained(facts) satisfies DrainVerdict };
}
