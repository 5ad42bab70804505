import { isValidSpanId, isValidTraceId, type SpanContext, TraceFlags } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import type { InjectedContext } from '../../model/log-entry.ts';

/** What a request says of the trace that it is in. */
export interface TraceFacts {
  /** As it went upstream. */
  traceparent: string | undefined;
  envoyTraceId: string | undefined;
  envoySpanId: string | undefined;
  injected: InjectedContext | undefined;
}

/** Where the exchange's span belongs. */
export interface Placement {
  /** Of the span itself; `undefined`: a new root, or its parent's. */
  traceId: string | undefined;
  /** Chosen, because the upstream already knows it; `undefined`: any. */
  spanId: string | undefined;
  /** `undefined`: a root. */
  parent: SpanContext | undefined;
  /** What the parent decided; `undefined`: nobody did. */
  sampled: boolean | undefined;
  /** True if Envoy's own tracer made the parent: then it has the server span, and ours is inside. */
  underEnvoy: boolean;
  /** True if Envoy's own tracer made a client span of each attempt too (`spawn_upstream_span`). */
  attemptsByEnvoy: boolean;
}

/** Envoy's own span, else the ids that were injected and sent, else the span that was sent, else a new root. */
export function placementOf(facts: TraceFacts): Placement {
  return underEnvoy(facts) ?? injectedPlace(facts) ?? underCaller(facts) ?? newRoot;
}

/** The trace that a request is in, whether or not spans of it are made; absent where nobody began one. */
export function traceIdOf(facts: TraceFacts): string | undefined {
  const { parent, traceId } = placementOf(facts);
  return parent?.traceId ?? traceId;
}

const newRoot: Placement = {
  traceId: undefined,
  spanId: undefined,
  parent: undefined,
  sampled: undefined,
  underEnvoy: false,
  attemptsByEnvoy: false,
};

/** Envoy writes its own span into `traceparent`, so that stands in where the log does not name the span (Envoy 1.37). */
function underEnvoy({ envoyTraceId, envoySpanId, traceparent }: TraceFacts): Placement | undefined {
  if (envoyTraceId === undefined) return undefined;
  // A 64-bit trace id (Zipkin, B3) is the 128-bit one with zeros before it.
  const traceId = envoyTraceId.length === 16 ? envoyTraceId.padStart(32, '0') : envoyTraceId;
  const sent = parse(traceparent);
  const ofEnvoy = sent?.traceId === traceId ? sent : undefined;
  const spanId = envoySpanId ?? ofEnvoy?.spanId ?? '';
  if (!isValidTraceId(traceId) || !isValidSpanId(spanId)) return undefined;
  const sampled = ofEnvoy && isSampled(ofEnvoy);
  const parent = remote(traceId, spanId, sampled === true);
  // Envoy 1.40: with `spawn_upstream_span` `traceparent` is the last attempt's. test/e2e/envoy-tracer.test.ts
  const attemptsByEnvoy = ofEnvoy !== undefined && ofEnvoy.spanId !== spanId;
  return { ...newRoot, parent, sampled, underEnvoy: true, attemptsByEnvoy };
}

function injectedPlace({ injected, traceparent }: TraceFacts): Placement | undefined {
  const sent = parse(traceparent);
  if (injected === undefined || sent?.traceId !== injected.traceId || sent.spanId !== injected.spanId) return undefined;
  const { traceId, spanId, parentSpanId, sampled } = injected;
  const hasParent = parentSpanId !== undefined && isValidSpanId(parentSpanId);
  const parent = hasParent ? remote(traceId, parentSpanId, sampled) : undefined;
  return { ...newRoot, traceId, spanId, parent, sampled };
}

function underCaller({ traceparent }: TraceFacts): Placement | undefined {
  const sent = parse(traceparent);
  if (sent === undefined) return undefined;
  const sampled = isSampled(sent);
  return { ...newRoot, parent: remote(sent.traceId, sent.spanId, sampled), sampled };
}

function parse(traceparent: string | undefined): SpanContext | undefined {
  return traceparent === undefined ? undefined : (parseTraceParent(traceparent) ?? undefined);
}

function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

function remote(traceId: string, spanId: string, sampled: boolean): SpanContext {
  return { traceId, spanId, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}
