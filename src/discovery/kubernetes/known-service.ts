import type { EarlierOwner, Termination } from '../../model/view.ts';
import { kubernetesGrace } from '../grace.ts';
import { type Knowledge, type Learned, learn, nothingKnown } from '../knowledge.ts';
import type { SliceEndpoint } from './slice.ts';

/** What is known of one Service. Immutable. Addresses without a port are its keys. */
export interface KnownService {
  readonly knowledge: Knowledge;
  /** It had a slice once: before that, slices do not speak for it. */
  readonly hadSlice: boolean;
  /** Of each address that is, or was, in a slice, the uids of its pods, the latest last. */
  readonly owners: ReadonlyMap<string, readonly string[]>;
  readonly terminating: ReadonlyMap<string, Termination>;
  readonly earlier: ReadonlyMap<string, readonly EarlierOwner[]>;
}

export const unknownService: KnownService = {
  knowledge: nothingKnown,
  hadSlice: false,
  owners: new Map(),
  terminating: new Map(),
  earlier: new Map(),
};

/** Earlier owners remembered of one address. */
const mostOwners = 4;

/** When what slices say now was seen, and from when on it may have been so. Epoch ms. */
export interface Seen {
  atMs: number;
  fromMs: number;
}

/** What is known after all slices of a service were looked at together; `slices` may be none. */
export function learnSlices(
  before: KnownService,
  slices: readonly (readonly SliceEndpoint[])[],
  seen: Seen,
  maxLeft: number,
): Learned & { known: KnownService } {
  const present = unite(slices.flat(), before.owners);
  const passedOn = [...present]
    .filter(([ip, { uid }]) => isAnother(before.owners.get(ip)?.at(-1), uid))
    .map(([ip]) => ip);
  const { knowledge: listing, added, removed } = learnListed(before.knowledge, present, { passedOn, seen, maxLeft });
  const knowledge = withEnding(listing, present, seen, maxLeft);
  const isKept = (ip: string) => present.has(ip) || knowledge.left.byEndpoint.has(ip);
  const known = {
    knowledge,
    hadSlice: before.hadSlice || slices.length > 0,
    owners: ownersAfter(before.owners, present, isKept),
    terminating: terminationsAfter(before, present, { passedOn, seen, isKept }),
    earlier: earlierAfter(before, { passedOn, seen, maxLeft, isKept }),
  };
  return { known, knowledge, added, removed };
}

function ownersAfter(
  before: KnownService['owners'],
  present: ReadonlyMap<string, SliceEndpoint>,
  isKept: (ip: string) => boolean,
): KnownService['owners'] {
  const after = new Map([...before].filter(([ip]) => isKept(ip)));
  for (const [ip, { uid }] of present) {
    const owners = after.get(ip) ?? [];
    if (uid !== undefined && owners.at(-1) !== uid) after.set(ip, [...owners, uid].slice(-mostOwners));
  }
  return after;
}

/** One word per address: it may be in several slices, and for a moment under its old and its new pod. */
function unite(
  endpoints: readonly SliceEndpoint[],
  owners: KnownService['owners'],
): ReadonlyMap<string, SliceEndpoint> {
  const united = new Map<string, SliceEndpoint>();
  for (const endpoint of endpoints) {
    const other = united.get(endpoint.ip);
    if (other === undefined || counts(endpoint, other, owners)) united.set(endpoint.ip, endpoint);
  }
  return united;
}

/** A pod that ends has the address no longer than one that does not; of two that do not, the one that is new has it. */
function counts(one: SliceEndpoint, other: SliceEndpoint, owners: KnownService['owners']): boolean {
  if (one.terminating !== other.terminating) return other.terminating;
  if (isAnother(one.uid, other.uid)) return rank(one, owners) > rank(other, owners);
  return one.ready && !other.ready;
}

/** The later a pod had the address, the higher; one that was never seen with it has it now. */
function rank({ ip, uid = '' }: SliceEndpoint, owners: KnownService['owners']): number {
  const known = owners.get(ip)?.indexOf(uid) ?? -1;
  return known < 0 ? Number.POSITIVE_INFINITY : known;
}

function isAnother(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

/** An address that passed from a listed pod to another listed one leaves and comes in one. */
function learnListed(
  before: Knowledge,
  present: ReadonlyMap<string, SliceEndpoint>,
  { passedOn, seen: { atMs }, maxLeft }: { passedOn: readonly string[]; seen: Seen; maxLeft: number },
): Learned {
  const endpoints = [...present].flatMap(([ip, { ready, terminating }]) => (ready && !terminating ? [ip] : []));
  const answer = { endpoints, atMs, grace: kubernetesGrace };
  const swapped = new Set(passedOn.filter((ip) => before.listed.has(ip)));
  if (swapped.size === 0) return learn(before, answer, maxLeft);
  const without = learn(before, { ...answer, endpoints: endpoints.filter((ip) => !swapped.has(ip)) }, maxLeft);
  const after = learn(without.knowledge, answer, maxLeft);
  return {
    knowledge: after.knowledge,
    added: [...without.added, ...after.added],
    removed: [...without.removed, ...after.removed],
  };
}

/** One that ends was listed, though it may have left before we looked. */
function withEnding(
  knowledge: Knowledge,
  present: ReadonlyMap<string, SliceEndpoint>,
  { atMs }: Seen,
  maxLeft: number,
): Knowledge {
  const { left } = knowledge;
  const unseen = [...present].filter(([ip, { terminating }]) => terminating && !left.byEndpoint.has(ip));
  const gone = unseen.map(([ip]) => [ip, atMs] as const);
  if (gone.length === 0) return knowledge;
  return { ...knowledge, left: left.after([], gone, maxLeft), graceMs: kubernetesGrace.graceMs };
}

function terminationsAfter(
  { terminating: before }: KnownService,
  present: ReadonlyMap<string, SliceEndpoint>,
  { passedOn, seen, isKept }: { passedOn: readonly string[]; seen: Seen; isKept: (ip: string) => boolean },
): KnownService['terminating'] {
  const after = new Map([...before].filter(([ip]) => isKept(ip) && !passedOn.includes(ip)));
  for (const [ip, { terminating, ready }] of present) {
    const sinceMs = after.get(ip)?.sinceMs ?? seen.atMs;
    if (terminating) after.set(ip, { sinceMs, goneMs: undefined });
    else if (ready) after.delete(ip);
  }
  for (const [ip, { sinceMs, goneMs }] of after)
    if (goneMs === undefined && present.get(ip)?.terminating !== true) after.set(ip, { sinceMs, goneMs: seen.atMs });
  return after;
}

function earlierAfter(
  { earlier: before, knowledge, terminating }: KnownService,
  {
    passedOn,
    seen,
    maxLeft,
    isKept,
  }: { passedOn: readonly string[]; seen: Seen; maxLeft: number; isKept: (ip: string) => boolean },
): KnownService['earlier'] {
  const kept = [...before].filter(([ip]) => isKept(ip));
  if (passedOn.length === 0 && kept.length === before.size) return before;
  const after = new Map(kept);
  for (const ip of passedOn) {
    const ending = terminating.get(ip);
    const leftAtMs = knowledge.left.byEndpoint.get(ip) ?? ending?.sinceMs ?? seen.atMs;
    const owners = after.get(ip) ?? [];
    const owner = {
      leftAtMs,
      graceFromMs: ending === undefined ? leftAtMs : (ending.goneMs ?? seen.atMs),
      // It cannot have had the address before the other one had left it.
      nextFromMs: Math.max(knowledge.left.byEndpoint.get(ip) ?? 0, Math.min(seen.fromMs, seen.atMs)),
      nextByMs: seen.atMs,
    };
    // The latest goes to the end, so that the oldest is forgotten first.
    after.delete(ip);
    after.set(ip, [...owners, owner].slice(-mostOwners));
  }
  return new Map([...after].slice(-maxLeft));
}
