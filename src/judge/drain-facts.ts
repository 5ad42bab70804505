import type { EndpointState, Holder, HolderState } from '../model/endpoint-report.ts';
import type { ExpectedReporter } from '../model/expected-reporter.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import type { PinUnknownReason } from '../model/verdict.ts';

/** What may be said of an endpoint that is to be shut down, the best first. */
export const drainStates = ['drained', 'may_be_open', 'blind', 'in_use', 'still_listed'] as const;
export type DrainState = (typeof drainStates)[number];

/** Why it cannot be known. docs/drained.md has what to do about each. */
export const blindReasons = [
  'no_reporter',
  'reporter_silent',
  'reporter_missing',
  'expected_unknown',
  'long_requests_not_flushed',
  'source_blind',
  'replica_unreachable',
  'answer_invalid',
  'replica_restarted',
  'truncated',
] as const;
export type BlindReason = (typeof blindReasons)[number];

/** One thing that hides the truth. */
export interface Blindness {
  reason: BlindReason;
  /** The reporter, replica or endpoint; `''` where there is none. */
  subject: string;
  /** More about it, in words; `''` where there is no more. */
  detail: string;
  /** It passes by itself then; absent: not by itself. */
  passesAtMs: number | undefined;
}

/** All times below are epoch ms on the clock of `nowMs`, those of replicas mapped to it. */
export interface DrainFacts {
  nowMs: number;
  /** How long nobody may have used the endpoint, ms. */
  quietForMs: number;
  /**
   * Node ids or pods that are known to be gone: neither their silence nor their connections count. Of one that is there
   * after all the connections do.
   */
  ignored: readonly string[];
  replicas: readonly ReplicaFacts[];
  /** What was asked for, over all replicas. */
  endpoints: readonly EndpointFacts[];
  /** A source asks the name in question: where there is no endpoint, none has left yet. */
  nameIsKnown: boolean;
  reporters: readonly ReporterFacts[];
  /** Who should report and does so to no replica; `undefined`: nobody said who should. */
  expected: ExpectedFacts | undefined;
  /** Times when nobody was looking, that are over. */
  gaps: readonly Gap[];
}

export interface ReplicaFacts {
  name: string;
  /** Why it gave no answer to judge by; absent: it did. */
  problem: { reason: 'replica_unreachable' | 'answer_invalid'; detail: string } | undefined;
  /** Absent only with a problem. */
  startedMs: number | undefined;
  truncated: boolean;
}

/** A connection that was seen at an endpoint, and where. */
export type HeldConnection = Holder & { cluster: string; endpoint: string };

export interface EndpointFacts {
  cluster: string;
  endpoint: string;
  state: EndpointState;
  reason: PinUnknownReason | undefined;
  /** Node ids of proxies whose own list has it, whatever its source says. */
  listedBy: readonly string[];
  /** The last failure of its source, in words. */
  sourceError: string | undefined;
  leftAtMs: number | undefined;
  /** Of one that left, the end of its grace: until then a proxy may go by an answer that lists it. */
  graceEndsMs: number | undefined;
  /** Absent: never, as far as remembered. */
  lastUsedMs: number | undefined;
  /** Until when connections may be open that a replica had no room to remember; infinite: without limit. Absent: none. */
  forgottenUntilMs: number | undefined;
  holders: readonly HeldConnection[];
  /** Connections beyond those in `holders`. */
  moreHolders: Record<HolderState, number>;
  /** Who used it after it left. */
  users: readonly Reporter[];
  /** Replicas (by name) that know by themselves whether and when it left. */
  knownTo: readonly string[];
}

export interface ReporterFacts {
  reporter: Reporter;
  profile: Profile;
  configVersion: number;
  /** It has a log stream to any replica now. */
  connected: boolean;
  lastEntryMs: number;
}

export interface ExpectedFacts {
  missing: readonly ExpectedReporter[];
  /** Why there may be more of them: what was asked, and the last failure or `''`. Absent: there are no more. */
  unknown: { subject: string; error: string } | undefined;
}

export interface Gap {
  reason: Extract<BlindReason, 'no_reporter' | 'reporter_silent' | 'replica_unreachable'>;
  subject: string;
  endedMs: number;
}

export interface DrainVerdict {
  state: DrainState;
  /** How long it is known that nobody used the endpoint, ms. Never more than is covered. */
  quietMs: number;
  /** What hides the truth, whatever the state. */
  blind: readonly Blindness[];
  /** Connections that can be open now. */
  holders: readonly HeldConnection[];
  /** Further ones, of which only the number is known. */
  moreHolders: number;
  /** When the last of them must be closed for want of use; infinite: never. Absent: there is none. */
  openUntilMs: number | undefined;
}

/** Whether a reporter is meant by one of these node ids or pods. */
export function isOneOf(ids: readonly string[], { nodeId, pod }: Pick<Reporter, 'nodeId' | 'pod'>): boolean {
  return ids.some((id) => id !== '' && (id === nodeId || id === pod));
}

/** By what a proxy is told from others. Its workload may be that of its inbound or of its outbound side. */
export function reporterKey({ nodeId, pod }: Pick<Reporter, 'nodeId' | 'pod'>): string {
  return `${nodeId}|${pod}`;
}

/** How a proxy is called in words: as `--ignore-reporter` takes it. */
export function reporterName({ nodeId, pod }: Reporter): string {
  return pod === '' ? nodeId : pod;
}
