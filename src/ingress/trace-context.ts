import { parseTraceParent } from '@opentelemetry/core';
import type { InjectedContext } from '../model/log-entry.ts';

export interface TraceContextOptions {
  /** Uniform in [0, 1). */
  random: () => number;
  /** Whether a trace that begins here is sampled. */
  injectRootSampled: () => boolean;
}

/**
 * The span that stands for this proxy's part of the request: a child of the caller's, whose trace and sampling it keeps,
 * or the root of a new trace where the caller sent no valid `traceparent` (W3C Trace Context, level 1).
 */
export function injectContext(traceparent: string | undefined, options: TraceContextOptions): InjectedContext {
  const caller = traceparent === undefined ? null : parseTraceParent(traceparent);
  const spanId = randomId(8, options.random);
  if (caller === null) {
    const traceId = randomId(16, options.random);
    return { traceId, spanId, parentSpanId: undefined, sampled: options.injectRootSampled() };
  }
  const sampled = caller.traceFlags % 2 === 1;
  return { traceId: caller.traceId, spanId, parentSpanId: caller.spanId, sampled };
}

/** What goes upstream. */
export function traceparentOf({ traceId, spanId, sampled }: InjectedContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

function randomId(bytes: number, random: () => number): string {
  const words = Array.from({ length: bytes / 4 }, () => Math.floor(random() * 2 ** 32));
  const id = words.map((word) => word.toString(16).padStart(8, '0')).join('');
  // An id of zeros is not valid.
  return /[1-9a-f]/.test(id) ? id : id.replace(/0$/, '1');
}
