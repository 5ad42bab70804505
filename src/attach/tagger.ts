import type { YAMLMap } from 'yaml';
import { blockMap, childMap, childSeq, flowMap, remark } from './nodes.ts';
import type { AttachPlan } from './plan.ts';

/** Under this key Envoy's runtime says which share of the requests is tagged, in percent: 0 is the kill switch. */
const tagPercentKey = 'sidelight.tag_percent';

const matcherType = 'type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher';
const compositeType = 'type.googleapis.com/envoy.extensions.filters.http.composite.v3.Composite';
const actionType = 'type.googleapis.com/envoy.extensions.filters.http.composite.v3.ExecuteFilterAction';

/** The ext_proc filter of a shipped config as the plan wants it: changed in place, or wrapped. */
export function plannedTagger(filter: YAMLMap, plan: AttachPlan): YAMLMap {
  const config = childMap(filter, 'typed_config');
  config.set('message_timeout', `${plan.messageTimeoutMs / 1000}s`);
  if (plan.inject) allowInject(config);
  return plan.samplePercent === undefined ? filter : sampled(filter, plan.samplePercent);
}

/** Two messages instead of one, and one more header that may be written. */
function allowInject(config: YAMLMap): void {
  childSeq(config, 'grpc_service', 'initial_metadata').add(
    remark(flowMap({ key: 'x-sidelight-inject', value: 'true' }), 'May set `traceparent` of the request.'),
  );
  childMap(config, 'processing_mode').set('request_header_mode', 'SEND');
  const allowed = childMap(config, 'mutation_rules', 'allow_expression');
  allowed.set('regex', String(allowed.get('regex')).replace('(', '(traceparent|'));
}

/** Envoy draws lots per request, before it opens a stream: what is not drawn costs nothing. */
function sampled(filter: YAMLMap, percent: number): YAMLMap {
  const name = filter.get('name');
  const share = flowMap({ numerator: Math.round(percent * 10_000), denominator: 'MILLION' });
  const samplePercent = blockMap({ default_value: share, runtime_key: tagPercentKey });
  const action = blockMap({ '@type': actionType, typed_config: filter, sample_percent: samplePercent });
  const wrapped = blockMap({
    name,
    typed_config: blockMap({
      '@type': matcherType,
      extension_config: blockMap({ name: 'composite', typed_config: flowMap({ '@type': compositeType }) }),
      xds_matcher: blockMap({ on_no_match: blockMap({ action: blockMap({ name: 'tag', typed_config: action }) }) }),
    }),
  });
  wrapped.commentBefore = filter.commentBefore ?? null;
  filter.commentBefore = null;
  return wrapped;
}
