import type { InjectedContext, LogEntry } from '../../src/model/log-entry.ts';
import type { Reporter } from '../../src/model/reporter.ts';
import { downstreamEnd, reporter, upstreamEnd } from './entries.ts';

/** What one proxy does of a request: one attempt each; those that are sent are requests of the next proxy. */
export interface Hop {
  attempts: { sent: boolean; next: Hop | undefined }[];
}

export interface Reported {
  reporter: Reporter;
  entry: LogEntry;
}

export interface Walk {
  /** The workload of each proxy on the way, the outermost first. */
  workloads: readonly string[];
  /** The trace and the span of the caller. */
  traceId: string;
  callerSpan: string;
  /** Each proxy sets a span of its own. */
  inject: boolean;
  code: number;
}

/** What the proxies of a chain log of one request, in the order in which it happens: an inner end before an outer one. */
export function walk(hop: Hop, options: Walk): Reported[] {
  const counter = { spans: 0 };
  return entriesOf(hop, 0, options.callerSpan, { ...options, counter }).reported;
}

function entriesOf(
  hop: Hop,
  depth: number,
  parent: string,
  options: Walk & { counter: { spans: number } },
): { reported: Reported[]; durationMs: number } {
  const { workloads, traceId, inject, counter, code } = options;
  counter.spans += 1;
  const key = `${depth}-${counter.spans}`;
  const spanId = inject ? counter.spans.toString(16).padStart(16, '0') : parent;
  const traceparent = `00-${traceId}-${spanId}-01`;
  const own = { ...reporter, workload: workloads[depth] ?? '' };
  const reported: Reported[] = [];
  // Each proxy adds some time of its own.
  let durationMs = 1;
  for (const { sent, next } of hop.attempts) {
    const inner = next === undefined ? undefined : entriesOf(next, depth + 1, spanId, options);
    reported.push(...(inner?.reported ?? []));
    durationMs += inner?.durationMs ?? 1;
    const failure = sent ? {} : { flags: ['UF' as const], transportFailure: 'refused' };
    const entry = upstreamEnd({
      key,
      code,
      firstUpstreamTxMs: sent ? 0 : undefined,
      ...failure,
      tags: { traceparent },
    });
    reported.push({ reporter: own, entry });
  }
  const injected: InjectedContext | undefined = inject
    ? { traceId, spanId, parentSpanId: parent, sampled: true }
    : undefined;
  const attemptCount = hop.attempts.length;
  const entry = downstreamEnd({ key, code, durationMs, attemptCount, tags: { traceparent, injected } });
  reported.push({ reporter: own, entry });
  return { reported, durationMs };
}

/** `tries` attempts at each of so many layers, all of them sent. */
export function evenHop(tries: readonly number[]): Hop {
  const [own = 1, ...further] = tries;
  const next = further.length === 0 ? undefined : evenHop(further);
  return { attempts: Array.from({ length: own }, () => ({ sent: true, next })) };
}
