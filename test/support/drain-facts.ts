import type {
  DrainFacts,
  EndpointFacts,
  HeldConnection,
  ReplicaFacts,
  ReporterFacts,
} from '../../src/judge/drain-facts.ts';
import { holder, oldEndpoint, shop } from './fake-replica.ts';

/** The moment at which all of these are judged. */
export const nowMs = 1_000_000_000;
export const minute = 60_000;
export const hour = 60 * minute;

export function heldConnection(over: Partial<HeldConnection> = {}): HeldConnection {
  return {
    ...holder(),
    cluster: 'payments',
    endpoint: oldEndpoint,
    openedMs: nowMs - 2 * hour,
    lastUsedMs: nowMs - 5 * minute,
    mayBeOpenUntilMs: nowMs + 55 * minute,
    ...over,
  };
}

export function endpointFacts(over: Partial<EndpointFacts> = {}): EndpointFacts {
  return {
    cluster: 'payments',
    endpoint: oldEndpoint,
    state: 'left',
    reason: undefined,
    listedBy: [],
    sourceError: undefined,
    leftAtMs: nowMs - 10 * minute,
    graceEndsMs: nowMs - 10 * minute + 10_000,
    lastUsedMs: nowMs - 5 * minute,
    forgottenUntilMs: undefined,
    holders: [],
    moreHolders: { open: 0, idle: 0, unseen: 0 },
    users: [],
    knownTo: ['one'],
    ...over,
  };
}

export function replicaFacts(over: Partial<ReplicaFacts> = {}): ReplicaFacts {
  return { name: 'one', problem: undefined, startedMs: nowMs - 24 * hour, truncated: false, ...over };
}

export function reporterFacts(over: Partial<ReporterFacts> = {}): ReporterFacts {
  return { reporter: shop, profile: 'observe', configVersion: 2, connected: true, lastEntryMs: nowMs - 1000, ...over };
}

/** An endpoint that is drained: left ten minutes ago, last used five minutes ago. */
export function drainFacts(over: Partial<DrainFacts> = {}): DrainFacts {
  return {
    nowMs,
    quietForMs: minute,
    ignored: [],
    replicas: [replicaFacts()],
    endpoints: [endpointFacts()],
    nameIsKnown: false,
    reporters: [reporterFacts()],
    expected: undefined,
    gaps: [],
    ...over,
  };
}
