import type { KnownHost } from './dns-source.ts';
import type { Knowledge } from './knowledge.ts';
import type { KnownService } from './kubernetes/known-service.ts';
import type { ServiceName } from './kubernetes/service-name.ts';
import {
  lastKnownMs,
  restoreHost,
  restoreKnowledge,
  restoreService,
  type SavedSubject,
  saveFileCluster,
  saveHost,
  saveService,
} from './saved.ts';

/** What is not looked at again for so long is not worth keeping. */
const keptMs = 86_400_000;

/** What an earlier run knew, until it is looked at again; and what is to be kept for the next run. */
export class Restored {
  readonly #subjects: ReadonlyMap<string, SavedSubject>;
  readonly #startedMs: number;

  constructor(subjects: readonly SavedSubject[], nowMs: number) {
    this.#subjects = new Map(subjects.map((subject) => [keyOf(subject), subject]));
    this.#startedMs = nowMs;
  }

  host(host: string): KnownHost | undefined {
    const saved = this.#subjects.get(hostKey(host));
    return saved?.source === 'dns' ? restoreHost(saved, this.#startedMs) : undefined;
  }

  service(name: ServiceName): KnownService | undefined {
    const saved = this.#subjects.get(serviceKey(name));
    return saved?.source === 'kubernetes' ? restoreService(saved, this.#startedMs) : undefined;
  }

  /** Of this file; what another file said is not its. */
  fileClusters(path: string): Map<string, Knowledge> {
    const known = new Map<string, Knowledge>();
    for (const saved of this.#subjects.values())
      if (saved.source === 'file' && saved.path === path)
        known.set(saved.cluster, restoreKnowledge(saved.known, this.#startedMs));
    return known;
  }

  /** What is known now, and of the rest what was known before: the latest heard of first. */
  state(now: {
    services: readonly [name: ServiceName, known: KnownService][];
    hosts: readonly [name: string, known: KnownHost][];
    file: { path: string | undefined; clusters: ReadonlyMap<string, Knowledge> };
    nowMs: number;
  }): SavedSubject[] {
    const { path } = now.file;
    const subjects = new Map(this.#subjects);
    // The file says what its clusters are: one that it no longer names is not kept.
    for (const [key, saved] of subjects) if (saved.source === 'file' && saved.path === path) subjects.delete(key);
    const known = [
      ...now.services.map((service) => saveService(...service)),
      ...now.hosts.map(([name, host]) => saveHost(name, host)),
      ...(path === undefined ? [] : [...now.file.clusters].map((cluster) => saveFileCluster(path, ...cluster))),
    ];
    for (const saved of known) if (saved !== undefined) subjects.set(keyOf(saved), saved);
    return [...subjects.values()]
      .filter((saved) => lastKnownMs(saved) > now.nowMs - keptMs)
      .toSorted((a, b) => lastKnownMs(b) - lastKnownMs(a));
  }
}

function keyOf(saved: SavedSubject): string {
  if (saved.source === 'dns') return hostKey(saved.host);
  return saved.source === 'kubernetes' ? serviceKey(saved) : JSON.stringify([saved.path, saved.cluster]);
}

function serviceKey({ namespace, service }: ServiceName): string {
  return `kubernetes ${namespace}/${service}`;
}

function hostKey(host: string): string {
  return `dns ${host}`;
}
