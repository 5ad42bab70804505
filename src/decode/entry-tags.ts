import type { EntryTags, InjectedContext } from '../model/log-entry.ts';
import { type PlainValue, plainValues, textValue } from './struct.ts';
import { idText } from './text.ts';
import { countText, microsTextMs } from './time.ts';
import type { WireCommon } from './wire-types.ts';

/** Namespace of the tagger's dynamic metadata. */
const metadataNamespace = 'sidelight';

/** Our custom tags of one entry. Tags that are not ours are left alone. */
export function entryTags(common: WireCommon): EntryTags {
  const tag = (name: string): string | undefined => idText(common.customTags?.[name]);
  const grpc = isGrpc(common.customTags?.['content_type']);
  return {
    connectionId: upstreamConnectionId(tag('connection_id')),
    connectionAgeMs: microsTextMs(tag('connection_age_us')),
    traceparent: tag('traceparent'),
    envoyTraceId: tag('trace_id'),
    envoySpanId: tag('span_id'),
    // On an HTTP/2 reset Envoy makes up a status; on a request that is not gRPC it means nothing.
    grpcStatus: grpc ? countText(tag('grpc_status')) : undefined,
    isGrpc: grpc,
    attemptCountHeader: countText(tag('attempt_count')),
    injected: injectedContext(plainValues(common.metadata?.filterMetadata?.[metadataNamespace])),
  };
}

/**
 * An upstream connection's id, or `undefined` where there was none: Envoy then writes `0` (or `-`). A real one is never
 * 0: ids are counted over both sides, and a request's own downstream connection has taken one first. On a fresh
 * Envoy 1.40 the first client connection had 0 and its upstream 2. test/unit/decode-fixtures.test.ts.
 */
export function upstreamConnectionId(text: string | undefined): string | undefined {
  return text === undefined || text === '' || text === '0' || text === '-' ? undefined : text;
}

/**
 * `application/grpc`, also with a suffix (`+proto`). Not `application/grpc-web`, which carries its status in the body,
 * where no log sees it, unless Envoy's filter makes gRPC of it.
 */
function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(?:$|[+;\s])/i.test(contentType);
}

function injectedContext(values: ReadonlyMap<string, PlainValue>): InjectedContext | undefined {
  const traceId = idText(textValue(values, 'trace_id'));
  const spanId = idText(textValue(values, 'span_id'));
  if (traceId === undefined || spanId === undefined) return undefined;
  return {
    traceId,
    spanId,
    parentSpanId: idText(textValue(values, 'parent_span_id')),
    sampled: values.get('sampled') === true,
  };
}
