import { z } from 'zod';
import { Departures } from './departures.ts';
import type { Families } from './dns-answer.ts';
import type { KnownHost } from './dns-source.ts';
import { noTtl } from './grace.ts';
import type { Knowledge } from './knowledge.ts';
import type { KnownService } from './kubernetes/known-service.ts';
import type { ServiceName } from './kubernetes/service-name.ts';

const time = z.number().nonnegative();
const times = z.array(z.tuple([z.string().max(512), time]));
const knowledge = z.object({
  firstAnswerMs: time,
  lastAnswerMs: time,
  listed: times,
  left: times,
  graceMs: time,
  replacedAtMs: z.array(time).max(2),
});
const addresses = z.array(z.string().max(64));

/** What is kept of one subject over a restart, plain JSON. What a proxy itself lists is not kept: it is asked again. */
const savedSubject = z.discriminatedUnion('source', [
  z.object({
    source: z.literal('dns'),
    host: z.string().max(512),
    longestTtlMs: time,
    servers: z
      .array(z.object({ server: z.string().max(4096), everHad: z.boolean(), v4: addresses, v6: addresses }))
      .max(64),
    known: knowledge,
  }),
  z.object({
    source: z.literal('kubernetes'),
    namespace: z.string().max(63),
    service: z.string().max(63),
    owners: z.array(z.tuple([z.string().max(64), z.array(z.string().max(64)).max(8)])),
    terminating: z.array(z.tuple([z.string().max(64), z.object({ sinceMs: time, goneMs: time.optional() })])),
    earlier: z.array(
      z.tuple([
        z.string().max(64),
        z.array(z.object({ leftAtMs: time, graceFromMs: time, nextFromMs: time, nextByMs: time })).max(8),
      ]),
    ),
    known: knowledge,
  }),
  z.object({ source: z.literal('file'), path: z.string(), cluster: z.string(), known: knowledge }),
]);
export type SavedSubject = z.output<typeof savedSubject>;
export const savedSubjects = z.array(savedSubject);
type SavedKnowledge = z.output<typeof knowledge>;

/** `undefined`: nothing is known yet. */
export function saveHost(host: string, { knowledge: known, families, ttl }: KnownHost): SavedSubject | undefined {
  const saved = saveKnowledge(known);
  if (saved === undefined) return undefined;
  const servers = Array.from(families, ([server, { everHad, v4, v6 }]) => ({
    server,
    everHad,
    v4: [...v4.addresses],
    v6: [...v6.addresses],
  }));
  return { source: 'dns', host, longestTtlMs: ttl.longestMs, servers, known: saved };
}

/** `undefined`: nothing is known yet, or it never had a slice. */
export function saveService({ namespace, service }: ServiceName, known: KnownService): SavedSubject | undefined {
  const saved = known.hadSlice ? saveKnowledge(known.knowledge) : undefined;
  return (
    saved && {
      source: 'kubernetes',
      namespace,
      service,
      owners: Array.from(known.owners, ([ip, uids]) => [ip, [...uids]]),
      terminating: Array.from(known.terminating, ([ip, { sinceMs, goneMs }]) => [
        ip,
        goneMs === undefined ? { sinceMs } : { sinceMs, goneMs },
      ]),
      earlier: Array.from(known.earlier, ([ip, owners]) => [ip, [...owners]]),
      known: saved,
    }
  );
}

/** What a saved service is worth at `nowMs`. */
export function restoreService(saved: Extract<SavedSubject, { source: 'kubernetes' }>, nowMs: number): KnownService {
  return {
    knowledge: restoreKnowledge(saved.known, nowMs),
    hadSlice: true,
    owners: new Map(saved.owners),
    terminating: new Map(saved.terminating.map(([ip, { sinceMs, goneMs }]) => [ip, { sinceMs, goneMs }])),
    earlier: new Map(saved.earlier),
  };
}

/** `undefined`: nothing is known yet. */
export function saveFileCluster(path: string, cluster: string, known: Knowledge): SavedSubject | undefined {
  const saved = saveKnowledge(known);
  return saved && { source: 'file', path, cluster, known: saved };
}

/** What a saved name is worth at `nowMs`. Its last answer stays as old as it is, until there is another. */
export function restoreHost(saved: Extract<SavedSubject, { source: 'dns' }>, nowMs: number): KnownHost {
  const families = saved.servers.map(({ server, everHad, v4, v6 }): [string, Families] => [
    server,
    { v4: { addresses: v4, saidNone: false }, v6: { addresses: v6, saidNone: false }, everHad },
  ]);
  return {
    knowledge: restoreKnowledge(saved.known, nowMs),
    families: new Map(families),
    ttl: { ...noTtl, longestMs: saved.longestTtlMs, toldMs: Math.min(saved.known.lastAnswerMs, nowMs) },
  };
}

/** Changes are counted from 0 again, as every counter of a process is. A clock that was set back makes nothing young. */
export function restoreKnowledge(saved: SavedKnowledge, nowMs: number): Knowledge {
  const past = (told: SavedKnowledge['listed']) =>
    new Map(told.map(([endpoint, atMs]) => [endpoint, Math.min(atMs, nowMs)]));
  return {
    firstAnswerMs: Math.min(saved.firstAnswerMs, nowMs),
    lastAnswerMs: Math.min(saved.lastAnswerMs, nowMs),
    listed: past(saved.listed),
    left: new Departures([...past(saved.left)]),
    graceMs: saved.graceMs,
    changes: { added: 0, removed: 0 },
    lastError: undefined,
    replacedAtMs: saved.replacedAtMs,
  };
}

function saveKnowledge(known: Knowledge): SavedKnowledge | undefined {
  const { firstAnswerMs, lastAnswerMs, listed, left, graceMs, replacedAtMs } = known;
  if (firstAnswerMs === undefined || lastAnswerMs === undefined) return undefined;
  return {
    firstAnswerMs,
    lastAnswerMs,
    listed: [...listed],
    left: Array.from(left, ([endpoint, leftAtMs]) => [endpoint, leftAtMs]),
    graceMs,
    replacedAtMs: [...replacedAtMs],
  };
}

/** When a subject was last known: the oldest is given up first. */
export function lastKnownMs({ known }: SavedSubject): number {
  return known.lastAnswerMs;
}
