import { type ExpectedReporter, podKey } from '../model/expected-reporter.ts';
import { type Profile, profiles, type Reporter } from '../model/reporter.ts';

/** Who reports, and by which config. */
export interface Covering {
  reporter: Reporter;
  profile: Profile;
  /** Of the attached config; from 2 on a request that lives for long is logged while it lives. 1 in profile `tag`. */
  configVersion: number;
}

/** One proxy that reports, as far as it is open now. Times epoch ms, our clock. */
export interface CoveredReporter extends Covering {
  /** Log streams that it holds open now; 0 in profile `tag`, whose streams live as long as a request. */
  streams: number;
  firstSeenMs: number;
  lastEntryMs: number;
}

/** Who reports: without this, "0 masked" is no fact. Bounded; of those gone the one not heard of for longest leaves first. */
export class Coverage {
  readonly #max: number;
  /** In order of the last entry. */
  readonly #byId = new Map<string, CoveredReporter>();

  constructor(maxReporters: number) {
    this.#max = maxReporters;
  }

  /** A reporter was heard. `newStreams`: 1 when it opened a log stream. */
  heard({ reporter, profile, configVersion }: Covering, nowMs: number, newStreams = 0): void {
    const id = idOf(reporter, profile);
    const known = this.#byId.get(id);
    this.#byId.delete(id);
    this.#byId.set(id, {
      reporter,
      profile,
      configVersion,
      streams: (known?.streams ?? 0) + newStreams,
      firstSeenMs: known?.firstSeenMs ?? nowMs,
      lastEntryMs: nowMs,
    });
    if (this.#byId.size > this.#max) this.#evict();
  }

  /** One of its log streams ended: that is not a sign of life. */
  streamEnded({ reporter, profile }: Covering): void {
    const known = this.#byId.get(idOf(reporter, profile));
    if (known !== undefined) known.streams = Math.max(0, known.streams - 1);
  }

  /** One with an open stream would come back as one without. */
  #evict(): void {
    const ids = [...this.#byId.keys()];
    const leaves = ids.find((id) => this.#byId.get(id)?.streams === 0) ?? ids[0];
    if (leaves !== undefined) this.#byId.delete(leaves);
  }

  /** Whether it has a log stream now. */
  isConnected(reporter: Reporter): boolean {
    return profiles.some((profile) => (this.#byId.get(idOf(reporter, profile))?.streams ?? 0) > 0);
  }

  reporters(): readonly CoveredReporter[] {
    return [...this.#byId.values()];
  }

  /** Those that should report and do not, in any profile; another replica may hear them. `quietMs`: see `summary`. */
  missing(expected: readonly ExpectedReporter[], nowMs: number, quietMs: number): ExpectedReporter[] {
    const reporting = this.reporters().filter((row) => isReporting(row, nowMs, quietMs));
    const pods = new Set(reporting.map(({ reporter }) => podKey(reporter)));
    return expected.filter((one) => !pods.has(podKey(one)));
  }

  /**
   * Per profile: how many report now (a stream is open, or, in `tag`, a request within `quietMs`), how many are
   * remembered but do not, and the last entry.
   */
  summary(
    nowMs: number,
    quietMs: number,
  ): { profile: Profile; reporters: number; silent: number; lastEntryMs: number | undefined }[] {
    return profiles.map((profile) => {
      const seen = this.reporters().filter((row) => row.profile === profile);
      const active = seen.filter((row) => isReporting(row, nowMs, quietMs));
      const silent = seen.length - active.length;
      return { profile, reporters: active.length, silent, lastEntryMs: seen.at(-1)?.lastEntryMs };
    });
  }
}

/** A stream is open, or, in `tag`, there was a request within `quietMs`. */
function isReporting({ streams, profile, lastEntryMs }: CoveredReporter, nowMs: number, quietMs: number): boolean {
  // Either way: after our clock was set back nobody is heard in the future.
  return streams > 0 || (profile === 'tag' && Math.abs(nowMs - lastEntryMs) < quietMs);
}

function idOf({ nodeId, pod, workload }: Reporter, profile: Profile): string {
  return [profile, nodeId, pod, workload].join('|');
}
