import { type Attributes, ROOT_CONTEXT, type Span, type SpanContext, type Tracer, trace } from '@opentelemetry/api';
import type { SpanFacts } from '../attributes.ts';
import { toHrTime } from '../time.ts';
import type { SpanPlan } from './exchange-span.ts';

/** Starts what was planned, under a parent or as a root; the caller ends it. */
export function startSpan(tracer: Tracer, parent: SpanContext | undefined, plan: SpanPlan): Span {
  const { name, kind, startMs, facts, status, link } = plan;
  const around = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
  const links = link === undefined ? [] : [{ context: link }];
  const span = tracer.startSpan(
    name,
    { kind, startTime: toHrTime(startMs), attributes: present(facts), links },
    around,
  );
  return span.setStatus(status);
}

function present(facts: SpanFacts): Attributes {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}
