import { createHash, timingSafeEqual } from 'node:crypto';
import type { PlainValue } from '../decode/struct.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { InjectedContext } from '../model/log-entry.ts';
import type { RequestFacts, ResponseFacts, Tags } from '../model/tag.ts';
import type { PinVerdict } from '../model/verdict.ts';
import { injectContext, type TraceContextOptions, traceparentOf } from './trace-context.ts';

/** What is to be done to a request or a response. */
export interface TagAnswer {
  /** Dynamic metadata of the namespace `sidelight`. */
  metadata: Readonly<Record<string, PlainValue>>;
  /** Headers to set, an earlier value of the same name is replaced. */
  setHeaders: readonly (readonly [name: string, value: string])[];
}

/** Decides what to tag. Pure but for the randomness that it was given. */
export interface Tagger {
  /** Only in `inject` mode. */
  requestHeaders(facts: RequestFacts): TagAnswer & { injected: InjectedContext };
  responseHeaders(facts: ResponseFacts): TagAnswer;
}

export interface TaggerOptions extends TraceContextOptions {
  responseHeaders: 'never' | 'on_request' | 'always';
  /** What `x-sidelight-debug` must say with `on_request`; absent: nothing does. */
  debugSecret: string | undefined;
  /** Times as Envoy said them; `undefined`: it did not. */
  pinOf(facts: {
    cluster: string;
    nodeId: string;
    endpoint: Endpoint;
    connectionAgeMs: number | undefined;
    requestStartMs: number | undefined;
  }): PinVerdict;
  /** Told of each tagged response: in profile `tag` nothing else tells of it. */
  tagged(facts: ResponseFacts, tags: Tags, pin: PinVerdict): void;
}

/** A local reply, or one whose endpoint Envoy did not say, has nothing that could be pinned. */
const noEndpoint: PinVerdict = { pin: 'unknown', reason: 'no_address', leftAtMs: undefined, source: undefined };

export function createTagger(options: TaggerOptions): Tagger {
  const secret = options.debugSecret === undefined ? undefined : digest(options.debugSecret);

  function wantsHeaders(facts: ResponseFacts): boolean {
    if (options.responseHeaders !== 'on_request') return options.responseHeaders === 'always';
    return (
      secret !== undefined && facts.debugSecret !== undefined && timingSafeEqual(secret, digest(facts.debugSecret))
    );
  }

  return {
    requestHeaders(facts) {
      const injected = injectContext(facts.traceparent, options);
      return {
        metadata: present({
          trace_id: injected.traceId,
          span_id: injected.spanId,
          parent_span_id: injected.parentSpanId,
          sampled: injected.sampled,
        }),
        setHeaders: [['traceparent', traceparentOf(injected)]],
        injected,
      };
    },
    responseHeaders(facts) {
      const { cluster, upstream: endpoint, connectionAgeMs, requestStartMs } = facts;
      const known = cluster !== undefined && endpoint !== undefined;
      const { nodeId } = facts.reporter;
      const pin = known ? options.pinOf({ cluster, nodeId, endpoint, connectionAgeMs, requestStartMs }) : noEndpoint;
      const tags = tagsOf(facts, pin);
      options.tagged(facts, tags, pin);
      const metadata = metadataOf(tags);
      return { metadata, setHeaders: wantsHeaders(facts) ? headersOf(metadata) : [] };
    },
  };
}

function tagsOf(facts: ResponseFacts, { pin }: PinVerdict): Tags {
  return {
    cluster: facts.cluster,
    endpoint: facts.upstream?.text,
    attempts: facts.attemptCount,
    retried: (facts.attemptCount ?? 0) > 1,
    connectionId: facts.connectionId,
    connectionAgeMs: facts.connectionAgeMs,
    pin,
    profile: facts.profile,
  };
}

function metadataOf(tags: Tags): Record<string, PlainValue> {
  return present({
    cluster: tags.cluster,
    endpoint: tags.endpoint,
    attempts: tags.attempts,
    retried: tags.retried,
    connection_id: tags.connectionId,
    connection_age_ms: tags.connectionAgeMs,
    pin: tags.pin,
    profile: tags.profile,
  });
}

function present(values: Record<string, PlainValue | undefined>): Record<string, PlainValue> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, PlainValue] => entry[1] !== undefined),
  );
}

/** Envoy refuses an answer whole if one value is no header value: such a value is left out. */
const headerValue = /^[\x20-\x7e]*$/;

function headersOf(metadata: Record<string, PlainValue>): [string, string][] {
  return Object.entries(metadata)
    .map(([name, value]): [string, string] => [`x-sidelight-${name.replaceAll('_', '-')}`, String(value)])
    .filter(([, value]) => headerValue.test(value));
}

/** Digests have one length, so that the comparison takes one time, whatever was sent. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
