import type { BodyKind, ProcessingKind } from '../decode/processing-request.ts';
import type { PlainValue } from '../decode/struct.ts';
import { wire } from '../decode/wire.ts';
import type { WireBody, WireStruct, WireValue } from '../decode/wire-types.ts';
import type { TagAnswer } from './tagger.ts';

/** Namespace of our dynamic metadata, and of nobody else's. */
const metadataNamespace = 'sidelight';

/** `OVERWRITE_IF_EXISTS_OR_ADD`. */
const overwrite = 2;

function empty(kind: ProcessingKind): Buffer {
  return wire.processingResponse.serialize({ [kind]: {} });
}

/** The matching answer to each kind of message that changes nothing. */
export const emptyAnswers: Readonly<Record<ProcessingKind, Buffer>> = {
  requestHeaders: empty('requestHeaders'),
  responseHeaders: empty('responseHeaders'),
  requestBody: empty('requestBody'),
  responseBody: empty('responseBody'),
  requestTrailers: empty('requestTrailers'),
  responseTrailers: empty('responseTrailers'),
};

/** The answer to a headers message with what the tagger wants. */
export function headersAnswer(kind: 'requestHeaders' | 'responseHeaders', answer: TagAnswer): Buffer {
  const setHeaders = answer.setHeaders.map(([key, value]) => ({
    header: { key, rawValue: Buffer.from(value) },
    appendAction: overwrite,
  }));
  return wire.processingResponse.serialize({
    [kind]: setHeaders.length === 0 ? {} : { response: { headerMutation: { setHeaders } } },
    dynamicMetadata: { fields: { [metadataNamespace]: { structValue: wireStruct(answer.metadata) } } },
  });
}

/** Gives a piece of a body back as it came: where Envoy keeps none of its own, an empty answer would lose it. */
export function bodyGivenBack(kind: BodyKind, piece: WireBody): Buffer {
  return wire.processingResponse.serialize({
    [kind]: { response: { bodyMutation: { streamedResponse: piece } } },
  });
}

function wireStruct(values: Readonly<Record<string, PlainValue>>): WireStruct {
  return { fields: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, wireValue(value)])) };
}

function wireValue(value: PlainValue): WireValue {
  if (typeof value === 'string') return { stringValue: value };
  return typeof value === 'number' ? { numberValue: value } : { boolValue: value };
}
