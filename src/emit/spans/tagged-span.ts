import { ATTR_HTTP_RESPONSE_STATUS_CODE } from '@opentelemetry/semantic-conventions';
import { attribute as a } from '../attributes.ts';
import type { TaggedResponse } from '../tagged-response.ts';
import { clusterAttributes } from './cluster-attributes.ts';
import {
  connectionAttributes,
  exchangeKind,
  flagText,
  pinAttributes,
  reporterAttributes,
  type SpanPlan,
  unset,
} from './exchange-span.ts';
import { requestAttributes, spanName } from './request-attributes.ts';

/**
 * The one span of profile `tag`: it ends at the response's head, and has no attempts, because they are not seen.
 * `nowMs`: when the head was seen.
 */
export function taggedPlan({ facts, tags, pin }: TaggedResponse, nowMs: number): SpanPlan {
  const { method, authority, path, cluster, route, reporter, profile, code } = facts;
  const startMs = facts.requestStartMs ?? nowMs;
  return {
    name: spanName(method, route ?? cluster),
    kind: exchangeKind(reporter, false),
    startMs,
    endMs: Math.max(startMs, nowMs),
    facts: {
      ...requestAttributes({ method, authority, path, scheme: undefined, isGrpc: false }),
      ...reporterAttributes(reporter),
      ...(facts.upstream === undefined ? {} : pinAttributes(pin, nowMs)),
      ...connectionAttributes(facts),
      ...clusterAttributes(cluster),
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: code,
      [a.profile]: profile,
      [a.endpoint]: facts.upstream?.text,
      [a.outcome]: 'unknown',
      'sidelight.unknown.reason': 'profile_tag',
      'sidelight.route': route,
      'sidelight.code_details': facts.codeDetails,
      'sidelight.flags': flagText(facts.flags),
      'sidelight.attempts': tags.attempts,
      'sidelight.retried': tags.retried,
    },
    status: unset,
    // Pins have spans only where connections are logged.
    link: undefined,
  };
}
