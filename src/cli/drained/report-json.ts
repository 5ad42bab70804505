import { type HeldConnection, reporterName } from '../../judge/drain-facts.ts';
import type { Reporter } from '../../model/reporter.ts';
import type { End } from './report.ts';
import { ignoredNames } from './words.ts';

/**
 * What `--json` prints, one object. Times are epoch ms on the command's clock; what is not known is left out.
 * docs/drained.md has every field.
 */
export function endJson(end: End) {
  const { options, facts, verdict, exitCode, endedBy, waitedMs } = end;
  return {
    target: options.target.text,
    verdict: verdict.state,
    exitCode,
    endedBy,
    nowMs: facts.nowMs,
    waitedMs,
    quietForMs: facts.quietForMs,
    quietMs: verdict.quietMs,
    longestWaitMs: finite(verdict.openUntilMs, (untilMs) => untilMs - facts.nowMs),
    replicas: facts.replicas.map(({ name, startedMs, problem }) => ({ name, startedMs, problem: problem?.reason })),
    endpoints: facts.endpoints.map(
      ({ cluster, endpoint, state, reason, source, subject, listedBy, leftAtMs, lastUsedMs, requests, bytes }) => ({
        cluster,
        endpoint,
        state,
        reason,
        source,
        subject,
        listedBy,
        leftAtMs,
        lastUsedMs,
        requests,
        bytes,
      }),
    ),
    connections: verdict.holders.map(connection),
    moreConnections: verdict.moreHolders,
    blind: verdict.blind,
    ignored: ignoredNames(facts),
  };
}

function connection(held: HeldConnection) {
  const { reporter, cluster, endpoint, layer, connectionId, state, pin, reason, advice } = held;
  const { openedMs, lastUsedMs, mayBeOpenUntilMs, requests, bytes } = held;
  return {
    reporter: named(reporter),
    cluster,
    endpoint,
    layer,
    connectionId,
    state,
    pin,
    reason,
    openedMs,
    lastUsedMs,
    mayBeOpenUntilMs,
    requests,
    bytes,
    advice,
  };
}

function named(reporter: Reporter) {
  const { kind, workload, namespace, pod, nodeId } = reporter;
  return { name: reporterName(reporter), kind, workload, namespace, pod, nodeId };
}

/** JSON has no infinity: null is without limit. */
function finite(value: number | undefined, map: (value: number) => number): number | null | undefined {
  if (value === undefined) return undefined;
  return value === Number.POSITIVE_INFINITY ? null : map(value);
}
