import type { Reporter } from '../model/reporter.ts';
import type { PinUnknownReason } from '../model/verdict.ts';
import {
  type Blindness,
  type BlindReason,
  type DrainFacts,
  isOneOf,
  type ReplicaFacts,
  type ReporterFacts,
  reporterKey,
  reporterName,
} from './drain-facts.ts';

/** Envoy's own `idle_timeout`, of HTTP pools and of the TCP proxy: what is not known to be longer is closed by then. */
const idleTimeoutMs = 60 * 60_000;

/** What hides the truth, whatever the state. */
export function blindness(facts: DrainFacts): Blindness[] {
  return [
    ...(facts.replicas.length === 0 ? [because('replica_unreachable', '', 'none was asked')] : []),
    ...facts.replicas.flatMap(ofReplica),
    ...ofReporters(facts),
    ...ofSources(facts),
    ...ofRestarts(facts),
    ...ofGaps(facts),
  ];
}

function because(reason: BlindReason, subject: string, detail = '', passesAtMs?: number): Blindness {
  return { reason, subject, detail, passesAtMs };
}

function ofReplica({ name, problem, truncated }: ReplicaFacts): Blindness[] {
  if (problem !== undefined) return [because(problem.reason, name, problem.detail)];
  return truncated ? [because('truncated', name)] : [];
}

function ofReporters(facts: DrainFacts): Blindness[] {
  const { nowMs, endpoints, replicas } = facts;
  // Who does not answer would know: that says enough.
  if (replicas.every(({ problem }) => problem !== undefined)) return [];
  const counts = ({ reporter }: { reporter: Reporter }) => !isOneOf(facts.ignored, reporter);
  const reporters = facts.reporters.filter(counts);
  const logging = facts.reporters.filter(({ profile }) => profile !== 'tag');
  const connected = new Set(
    reporters.filter((one) => one.connected && one.profile !== 'tag').map(({ reporter }) => reporterKey(reporter)),
  );
  const nobody = logging.length === 0 || (connected.size === 0 && logging.some(counts));
  const involved = endpoints.flatMap(({ users, holders }) => [...users, ...holders.map(({ reporter }) => reporter)]);
  const silent = new Map(
    involved
      .filter((reporter) => counts({ reporter }) && !connected.has(reporterKey(reporter)))
      .map((reporter) => [reporterKey(reporter), reporter]),
  );
  return [
    ...(nobody ? [because('no_reporter', '')] : []),
    ...Array.from(silent.values(), (reporter) => because('reporter_silent', reporterName(reporter))),
    ...reporters.filter((one) => hidesLongRequests(one, nowMs)).map(unflushed),
    ...ofExpected(facts),
  ];
}

function ofExpected({ expected, ignored }: DrainFacts): Blindness[] {
  if (expected === undefined) return [];
  const { missing, unknown } = expected;
  const counting = missing.filter(({ pod }) => !isOneOf(ignored, { nodeId: '', pod }));
  return [
    ...counting.map(({ namespace, pod }) => because('reporter_missing', pod, `namespace ${namespace}`)),
    ...(unknown === undefined ? [] : [because('expected_unknown', unknown.subject, unknown.error)]),
  ];
}

/** A request that such a proxy began an hour ago would be told at its end only: whether it uses the endpoint is not known. */
function hidesLongRequests({ profile, configVersion, connected, lastEntryMs }: ReporterFacts, nowMs: number): boolean {
  if (profile === 'tag') return nowMs - lastEntryMs < idleTimeoutMs;
  return connected && configVersion < 2;
}

function unflushed({ reporter, profile, configVersion }: ReporterFacts): Blindness {
  const detail = profile === 'tag' ? 'profile tag' : `config version ${configVersion}`;
  return because('long_requests_not_flushed', reporterName(reporter), detail);
}

function ofSources({ endpoints, nameIsKnown, replicas }: DrainFacts): Blindness[] {
  const nobodyKnows = endpoints.length === 0 && !nameIsKnown && replicas.some(({ problem }) => problem === undefined);
  if (nobodyKnows) return [because('source_blind', '', 'never listed and never used, as far as is known')];
  return endpoints
    .filter(({ state, reason }) => state === 'unknown' && (reason === undefined || !tellsWhatIsListed[reason]))
    .map(({ cluster, endpoint, reason, sourceError }) => {
      const detail = [reason, sourceError].filter((part) => part !== undefined).join(': ');
      return because('source_blind', `${cluster} ${endpoint}`, detail);
    });
}

/** Whether a source may still tell that the endpoint is not listed, though it cannot judge some connection by it. */
const tellsWhatIsListed: Record<PinUnknownReason, boolean> = {
  older_than_view: true,
  age_unknown: true,
  tunnelled: true,
  no_source: false,
  no_answer_yet: false,
  source_stale: false,
  no_address: false,
  other_resolver: false,
  owner_unclear: true,
};

/**
 * What flowed while a replica was away is lost. And one that began after the endpoint left, without a state file, does
 * not know of a connection that nobody has used since: it may be open for an idle timeout.
 */
function ofRestarts({ nowMs, quietForMs, replicas, endpoints }: DrainFacts): Blindness[] {
  return replicas.flatMap(({ name, startedMs, problem }) => {
    if (problem !== undefined || startedMs === undefined) return [];
    const missedIt = endpoints.some(
      ({ knownTo, leftAtMs }) => !knownTo.includes(name) && (leftAtMs === undefined || startedMs > leftAtMs),
    );
    const [afterMs, detail] = missedIt
      ? [Math.max(quietForMs, idleTimeoutMs), 'it began after the endpoint left']
      : [quietForMs, ''];
    const passesAtMs = startedMs + afterMs;
    return passesAtMs > nowMs ? [because('replica_restarted', name, detail, passesAtMs)] : [];
  });
}

function ofGaps({ nowMs, quietForMs, gaps }: DrainFacts): Blindness[] {
  return gaps
    .filter(({ endedMs }) => endedMs + quietForMs > nowMs)
    .map(({ reason, subject, endedMs }) => because(reason, subject, 'it was, until lately', endedMs + quietForMs));
}
