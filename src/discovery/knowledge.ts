import { Departures } from './departures.ts';
import type { Grace } from './grace.ts';

/** What a source knows of one subject (a host name, a cluster in a file): the part of a view that clusters share. */
export interface Knowledge {
  /** The first and the last good answer, epoch ms; `undefined`: none yet. */
  readonly firstAnswerMs: number | undefined;
  readonly lastAnswerMs: number | undefined;
  readonly listed: ReadonlyMap<string, number>;
  readonly left: Departures;
  /** See `ClusterView.graceMs`. */
  readonly graceMs: number;
  readonly changes: { readonly added: number; readonly removed: number };
  readonly lastError: string | undefined;
  /** When the last answers came that both added and removed endpoints, oldest first; two at most. */
  readonly replacedAtMs: readonly number[];
}

/** An answer: exactly these endpoints. */
export interface Answer {
  endpoints: readonly string[];
  atMs: number;
  /** For those that leave by this answer. */
  grace: Grace;
  /** Why it is not whole: what it says is taken in, but it makes nothing younger. Absent: it is whole. */
  doubt?: string | undefined;
  /** When an endpoint that is not in it left; absent: `atMs`. */
  leftAtMs?: (endpoint: string) => number;
}

export interface Learned {
  knowledge: Knowledge;
  /** Both empty for the first answer: it is no change. */
  added: readonly string[];
  removed: readonly string[];
}

export const nothingKnown: Knowledge = {
  firstAnswerMs: undefined,
  lastAnswerMs: undefined,
  listed: new Map(),
  left: Departures.none,
  graceMs: 0,
  changes: { added: 0, removed: 0 },
  lastError: undefined,
  replacedAtMs: [],
};

/** What is known after an answer. `maxLeft`: how many that left are remembered, the oldest forgotten first. */
export function learn(known: Knowledge, answer: Answer, maxLeft: number): Learned {
  const answered = new Set(answer.endpoints);
  const added = [...answered].filter((endpoint) => !known.listed.has(endpoint));
  const removed = [...known.listed.keys()].filter((endpoint) => !answered.has(endpoint));
  const heard = { ...known, ...heardBy(known, answer) };
  if (added.length === 0 && removed.length === 0) return { knowledge: heard, added, removed };
  const first = known.firstAnswerMs === undefined;
  const replaces = added.length > 0 && removed.length > 0;
  const replacedAtMs = replaces ? [...known.replacedAtMs, answer.atMs].slice(-2) : known.replacedAtMs;
  const knowledge = {
    ...heard,
    listed: new Map([...answered].map((endpoint) => [endpoint, known.listed.get(endpoint) ?? answer.atMs])),
    left: known.left.after(added, departing(removed, answer), maxLeft),
    graceMs: removed.length === 0 ? known.graceMs : graceAfter(known, replacedAtMs, answer),
    changes: first
      ? known.changes
      : { added: known.changes.added + added.length, removed: known.changes.removed + removed.length },
    replacedAtMs,
  };
  return first ? { knowledge, added: [], removed: [] } : { knowledge, added, removed };
}

function heardBy({ firstAnswerMs, lastAnswerMs }: Knowledge, { atMs, doubt }: Answer) {
  return {
    firstAnswerMs: firstAnswerMs ?? atMs,
    lastAnswerMs: doubt === undefined ? atMs : (lastAnswerMs ?? atMs),
    lastError: doubt,
  };
}

/** What is known after a failure: all that was known before. It grows stale by itself, it is never emptied. */
export function fail(known: Knowledge, error: string): Knowledge {
  return { ...known, lastError: error };
}

function departing(removed: readonly string[], { atMs, leftAtMs = () => atMs }: Answer) {
  return removed.map((endpoint) => [endpoint, leftAtMs(endpoint)] as const);
}

/** A grace never ends early because a later change had a shorter one. */
function graceAfter(known: Knowledge, replacedAtMs: readonly number[], { atMs, grace }: Answer): number {
  const graceMs = rotates(replacedAtMs, atMs, grace) ? grace.rotatingGraceMs : grace.graceMs;
  const { lastMs } = known.left;
  const earlierHolds = lastMs !== undefined && atMs - lastMs < known.graceMs;
  return earlierHolds ? Math.max(graceMs, known.graceMs) : graceMs;
}

/** A flip replaces endpoints once. Twice within three graces is flapping, or a subset of many, another each time. */
function rotates([first, second]: readonly number[], atMs: number, { graceMs }: Grace): boolean {
  return first !== undefined && second !== undefined && atMs - first <= 3 * graceMs;
}
