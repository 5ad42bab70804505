import type { YAMLMap } from 'yaml';
import { childSeq, flowMap, mapOf, remark, seqOf } from '../nodes.ts';
import type { LogParts } from '../parts.ts';
import { firstIstioWithSpanId, type IstioPlan } from '../plan.ts';

/**
 * Istio's gateways trace with `spawn_upstream_span`: there each attempt's own span is in `traceparent`, and only
 * `%SPAN_ID%` names the request's. test/istio/tracing.test.ts. An Envoy that does not know it refuses the whole config, so
 * that it is written only where the version was said.
 */
export function addSpanId({ request }: LogParts, { target, istioMinor }: IstioPlan): void {
  if (target !== 'gateway' || istioMinor === undefined || istioMinor < firstIstioWithSpanId) return;
  const logger = mapOf(seqOf(request.value).get(0, true));
  const tags = childSeq(logger, 'typed_config', 'common_config', 'custom_tags');
  const index = tags.items.findIndex((tag) => mapOf(tag).get('tag') === 'trace_id');
  const [traceId, next] = [tags.items[index], tags.items[index + 1]] as [YAMLMap, YAMLMap];
  // The file says there when to add this line, and how.
  remark(traceId, "Envoy's own trace and span; empty unless its tracer is on.");
  next.commentBefore = null;
  tags.items.splice(index + 1, 0, flowMap({ tag: 'span_id', value: '%SPAN_ID%' }));
}
