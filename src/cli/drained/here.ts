import type { DrainVerdict } from '../../judge/drain-facts.ts';
import { judgeDrained } from '../../judge/drained.ts';
import type { EndpointsSeen, ReportersSeen } from './answers.ts';
import { isSameEndpoint, mergeEndpoints, mergeExpected, mergeReporters } from './merge.ts';
import { snapshotOf } from './snapshot.ts';

/** The one replica that is asked. */
const here = 'this replica';

/**
 * What `sidelight drained ENDPOINT` would say of this replica alone, at its first look: a function of the endpoint.
 * `endpoints` may be about more endpoints, but must have all that is known of the address that is asked for.
 */
export function judgeHere(
  endpoints: EndpointsSeen,
  answer: ReportersSeen,
  quietForMs: number,
): (endpoint: string) => DrainVerdict {
  const { nowMs } = endpoints;
  const { startedMs, truncated, expected, ...snapshot } = snapshotOf(endpoints, answer, nowMs);
  const reporters = mergeReporters(snapshot.reporters);
  const facts = {
    nowMs,
    quietForMs,
    reporters,
    ignored: [],
    gaps: [],
    nameIsKnown: false,
    replicas: [{ name: here, problem: undefined, startedMs, truncated }],
    expected: mergeExpected([{ expected }], reporters),
  };
  return (endpoint) => {
    const told = snapshot.endpoints.filter((seen) => isSameEndpoint(seen.endpoint, endpoint));
    return judgeDrained({ ...facts, endpoints: mergeEndpoints(told.map((seen) => ({ replica: here, seen }))) });
  };
}
