import { type Answer, fail, type Knowledge, learn } from './knowledge.ts';

/**
 * What a cluster with a window makes of its subject's answers: an endpoint is listed until `windowMs` after the last
 * answer that had it. For names that answer with a part of their addresses, another one each time.
 */
export interface Windowed {
  readonly knowledge: Knowledge;
  /** Of each that is listed: the last answer that had it, epoch ms. */
  readonly lastSeenMs: ReadonlyMap<string, number>;
  /** Since the last whole answer one failed, or this process began: nobody knows what would have been answered. */
  readonly interrupted: boolean;
}

/** Begins with what the subject's own answers told so far. What left a moment ago may still be inside the window. */
export function openWindow(known: Knowledge, windowMs: number): Windowed {
  const { lastAnswerMs } = known;
  if (lastAnswerMs === undefined) return { knowledge: known, lastSeenMs: new Map(), interrupted: false };
  const inside = [...known.left].filter(([, leftAtMs]) => lastAnswerMs < leftAtMs + windowMs);
  const listed = new Map([...known.listed, ...inside]);
  const left = known.left.after([...listed.keys()], [], Number.POSITIVE_INFINITY);
  const seen = [...known.listed.keys()].map((endpoint) => [endpoint, lastAnswerMs] as const);
  return {
    knowledge: { ...known, listed, left },
    lastSeenMs: new Map([...inside, ...seen]),
    interrupted: true,
  };
}

/** After an answer: what is outside the window by then leaves, at the moment when the window was over. */
export function slideWindow(before: Windowed, answer: Answer, windowMs: number, maxLeft: number): Windowed {
  const { atMs, doubt } = answer;
  const answered = new Set(answer.endpoints);
  const lastSeenMs = new Map<string, number>();
  for (const [endpoint, seenMs] of before.lastSeenMs) lastSeenMs.set(endpoint, before.interrupted ? atMs : seenMs);
  for (const endpoint of answered) lastSeenMs.set(endpoint, atMs);
  const overMs = (endpoint: string) => (lastSeenMs.get(endpoint) ?? atMs) + windowMs;
  const endpoints = [...lastSeenMs.keys()].filter((endpoint) => answered.has(endpoint) || atMs < overMs(endpoint));
  // The window is the allowance for rotation: the long grace of names that rotate would be a second one.
  const grace = { ...answer.grace, rotatingGraceMs: answer.grace.graceMs };
  const { knowledge } = learn(
    before.knowledge,
    { endpoints, atMs, grace, doubt, leftAtMs: (endpoint) => Math.min(atMs, overMs(endpoint)) },
    maxLeft,
  );
  const listedSeenMs = new Map(endpoints.map((endpoint) => [endpoint, lastSeenMs.get(endpoint) ?? atMs]));
  return { knowledge, lastSeenMs: listedSeenMs, interrupted: doubt !== undefined };
}

/** After a failure nothing leaves: no window runs out while nobody answers. */
export function holdWindow(before: Windowed, error: string): Windowed {
  return { ...before, knowledge: fail(before.knowledge, error), interrupted: true };
}
