import { Buffer } from 'node:buffer';
import type { DecodeError, DecodeLimits } from './limits.ts';
import { type PlainValue, plainValues } from './struct.ts';
import { wire } from './wire.ts';
import type { WireBody, WireHeader, WireProcessingRequest } from './wire-types.ts';

/** The phases of which ext_proc tells; each has an answer of its own. */
export type ProcessingKind =
  | 'requestHeaders'
  | 'responseHeaders'
  | 'requestBody'
  | 'responseBody'
  | 'requestTrailers'
  | 'responseTrailers';

export type BodyKind = 'requestBody' | 'responseBody';

const kinds: ReadonlySet<string | undefined> = new Set<ProcessingKind>([
  'requestHeaders',
  'responseHeaders',
  'requestBody',
  'responseBody',
  'requestTrailers',
  'responseTrailers',
]);

/** One message of an ext_proc stream. */
export interface ProcessingMessage {
  kind: ProcessingKind;
  /** Envoy waits for no answer and ignores one. */
  observability: boolean;
  /** Bodies of which Envoy keeps nothing: a piece that is not given back is lost. In a stream's first message only. */
  bodiesNotKept: readonly BodyKind[];
  /** The piece of a body, of the two body kinds. */
  body: WireBody | undefined;
  /** Values of the attributes, by the text of their expressions. */
  attributes: ReadonlyMap<string, PlainValue>;
  /** By lower-case name; several of one name are joined with a comma. */
  headers: ReadonlyMap<string, string>;
}

/** On an error `kind` is what is to be answered; absent where nothing can be. */
export type ProcessingMessageResult =
  | { ok: true; message: ProcessingMessage }
  | {
      ok: false;
      error: DecodeError;
      kind: ProcessingKind | undefined;
      observability: boolean;
      bodiesNotKept: readonly BodyKind[];
    };

/** Envoy's key for the attributes, whatever the filter's own name. */
const attributesKey = 'envoy.filters.http.ext_proc';

/** `BodySendMode` from FULL_DUPLEX_STREAMED on (Envoy 1.40: also GRPC). */
const firstModeWithoutBody = 4;

/** Decodes a `ProcessingRequest`. Never throws, whatever the bytes. */
export function decodeProcessingRequest(bytes: Uint8Array, limits: DecodeLimits): ProcessingMessageResult {
  if (bytes.length > limits.messageBytes) {
    const text = `ext_proc message of ${bytes.length} bytes, over ${limits.messageBytes}`;
    return refusal({ reason: 'messageBytes', text });
  }
  try {
    return processingMessage(wire.processingRequest.deserialize(bytes as Buffer), limits);
  } catch {
    return refusal({ reason: 'malformed', text: `${bytes.length} bytes that are no ext_proc message` });
  }
}

/** A message that was not read leaves open what is to be answered. */
function refusal(error: DecodeError): ProcessingMessageResult {
  return { ok: false, error, kind: undefined, observability: false, bodiesNotKept: [] };
}

function processingMessage(request: WireProcessingRequest, limits: DecodeLimits): ProcessingMessageResult {
  const told = { observability: request.observabilityMode === true, bodiesNotKept: bodiesNotKept(request) };
  if (!isKind(request.request)) {
    const text = 'an ext_proc message of a kind that is not known';
    return { ok: false, error: { reason: 'malformed', text }, kind: undefined, ...told };
  }
  const attributes = request.attributes?.[attributesKey];
  const headers = (request.requestHeaders ?? request.responseHeaders)?.headers?.headers ?? [];
  const passed = passedLimit(headers, Object.keys(attributes?.fields ?? {}).length, limits);
  if (passed !== undefined) {
    const text = `an ext_proc message over ${passed} ${limits[passed]}`;
    return { ok: false, error: { reason: passed, text }, kind: request.request, ...told };
  }
  return {
    ok: true,
    message: {
      kind: request.request,
      ...told,
      body: request.requestBody ?? request.responseBody,
      attributes: plainValues(attributes),
      headers: headerMap(headers),
    },
  };
}

function bodiesNotKept({ protocolConfig }: WireProcessingRequest): readonly BodyKind[] {
  const { requestBodyMode = 0, responseBodyMode = 0 } = protocolConfig ?? {};
  const bodies: BodyKind[] = [];
  if (requestBodyMode >= firstModeWithoutBody) bodies.push('requestBody');
  if (responseBodyMode >= firstModeWithoutBody) bodies.push('responseBody');
  return bodies;
}

function isKind(text: string | undefined): text is ProcessingKind {
  return kinds.has(text);
}

/** RFC 9113, 6.5.2. */
const bytesPerHeader = 32;

function passedLimit(
  headers: readonly WireHeader[],
  attributeCount: number,
  limits: DecodeLimits,
): 'headerBytes' | 'tagsPerEntry' | undefined {
  if (attributeCount > limits.tagsPerEntry) return 'tagsPerEntry';
  const bytes = headers.reduce((sum, { key, value, rawValue }) => {
    return sum + (key?.length ?? 0) + (rawValue?.length ?? value?.length ?? 0) + bytesPerHeader;
  }, 0);
  return bytes > limits.headerBytes ? 'headerBytes' : undefined;
}

function headerMap(headers: readonly WireHeader[]): ReadonlyMap<string, string> {
  const map = new Map<string, string>();
  for (const { key, value, rawValue } of headers) {
    if (key === undefined) continue;
    const text = rawValue === undefined ? (value ?? '') : Buffer.from(rawValue).toString();
    const name = key.toLowerCase();
    const before = map.get(name);
    map.set(name, before === undefined ? text : `${before},${text}`);
  }
  return map;
}
