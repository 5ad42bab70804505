import type { ServerDuplexStream, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { DecodeLimits } from '../decode/limits.ts';
import { requestFacts, responseFacts } from '../decode/processing-facts.ts';
import {
  type BodyKind,
  decodeProcessingRequest,
  type ProcessingMessage,
  type ProcessingMessageResult,
} from '../decode/processing-request.ts';
import { wireServices } from '../decode/wire.ts';
import type { InjectedContext } from '../model/log-entry.ts';
import type { Profile } from '../model/reporter.ts';
import type { IngressCounters } from './counters.ts';
import { bodyGivenBack, emptyAnswers, headersAnswer } from './replies.ts';
import type { Tagger } from './tagger.ts';

export interface ExtProcOptions {
  limits: DecodeLimits & { processStreams: number };
  tagger: Tagger;
  counters: IngressCounters;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs: () => number;
}

/** A message, and when it arrived (monotonic clock). */
interface Arrived {
  result: ProcessingMessageResult;
  atMs: number;
}
type Call = ServerDuplexStream<Arrived, Buffer>;

const kind = 'ext_proc';

/** The method as Envoy calls it. Reading never throws: what cannot be decoded arrives as an error to be answered. */
export function extProcDefinition(limits: DecodeLimits, monotonicMs: () => number) {
  const method = wireServices.externalProcessor['Process'];
  const passBytes = (bytes: Buffer): Buffer => bytes;
  return {
    Process: {
      path: method?.path ?? '',
      requestStream: true,
      responseStream: true,
      requestSerialize: passBytes,
      requestDeserialize: (bytes: Buffer): Arrived => {
        const atMs = monotonicMs();
        return { result: decodeProcessingRequest(bytes, limits), atMs };
      },
      responseSerialize: passBytes,
      responseDeserialize: passBytes,
    },
  };
}

/** `envoy.service.ext_proc.v3.ExternalProcessor`. It sits in the request path: whatever happens, a request goes on. */
export function createExtProcService(options: ExtProcOptions): UntypedServiceImplementation {
  let open = 0;
  return {
    Process(call: Call) {
      // A reset is no error of ours; without a listener it would end the process.
      call.on('error', () => undefined);
      if (open >= options.limits.processStreams) {
        options.counters.refused(kind, 'too_many_streams', 1);
        options.counters.failOpen();
        call.end();
        return;
      }
      open += 1;
      options.counters.streamOpened(kind);
      call.once('close', () => {
        open -= 1;
        options.counters.streamClosed(kind);
      });
      new ProcessStream(call, options).start();
    },
  };
}

/**
 * One stream, which is one HTTP request. Its legal transitions:
 *
 *     open ── a message of a known kind ──▶ open      one matching answer; none in observability mode
 *     open ── unanswerable ──▶ closed                 no message, no known kind, or too large: ended with OK, and Envoy
 *                                                     goes on without us (fail open)
 *     open ── Envoy's end ──▶ closed                  ended with OK
 *     open ── cancelled ──▶ closed                    the normal end: Envoy resets the stream after its last answer
 *
 * Any phase may be missing and none is waited for. The first message leaves behind which bodies Envoy does not keep, the
 * request headers the injected context. Our own configs send no body; in a foreign one whose bodies Envoy does not keep
 * (FULL_DUPLEX_STREAMED) each piece is given back, since ending the stream loses what is under way.
 * Envoy 1.40, test/e2e/ingress.test.ts.
 */
class ProcessStream {
  readonly #call: Call;
  readonly #options: ExtProcOptions;
  readonly #profile: Profile | undefined;
  readonly #inject: boolean;
  #bodiesNotKept: readonly BodyKind[] | undefined;
  #injected: InjectedContext | undefined;
  #ended = false;

  constructor(call: Call, options: ExtProcOptions) {
    this.#call = call;
    this.#options = options;
    this.#profile = profileOf(call.metadata.get('x-sidelight-profile')[0]);
    this.#inject = call.metadata.get('x-sidelight-inject')[0] === 'true';
    if (this.#profile === undefined) options.counters.refused(kind, 'unknown_profile', 1);
  }

  start(): void {
    const call = this.#call;
    call.on('data', (arrived: Arrived) => this.#message(arrived));
    call.on('end', () => this.#end());
  }

  #message({ result, atMs }: Arrived): void {
    if (this.#ended) return;
    const { counters, monotonicMs } = this.#options;
    counters.message(kind);
    const { observability, bodiesNotKept } = result.ok ? result.message : result;
    this.#bodiesNotKept ??= bodiesNotKept;
    const answer = result.ok ? this.#answer(result.message) : this.#undecoded(result);
    if (answer === undefined) this.#end();
    else if (!observability) this.#write(answer);
    counters.answered(monotonicMs() - atMs);
  }

  /** `undefined`: there is nothing that would be an answer. */
  #undecoded(result: Exclude<ProcessingMessageResult, { ok: true }>): Buffer | undefined {
    const { counters } = this.#options;
    const { reason } = result.error;
    if (reason === 'malformed') counters.decodeError(kind, result.error);
    else counters.refused(kind, reason, 1);
    counters.failOpen();
    return result.kind === undefined ? undefined : emptyAnswers[result.kind];
  }

  #answer(message: ProcessingMessage): Buffer {
    const phase = message.kind;
    if (phase === 'requestHeaders' || phase === 'responseHeaders') return this.#headersAnswer(message, phase);
    const givenBack = this.#bodiesNotKept?.find((body) => body === phase);
    return givenBack === undefined ? emptyAnswers[phase] : bodyGivenBack(givenBack, message.body ?? {});
  }

  #headersAnswer(message: ProcessingMessage, phase: 'requestHeaders' | 'responseHeaders'): Buffer {
    if (this.#profile === undefined) this.#options.counters.failOpen();
    else if (phase === 'responseHeaders' || this.#inject) {
      try {
        const profile = this.#profile;
        return phase === 'responseHeaders' ? this.#tag(message, profile) : this.#injectInto(message, profile);
      } catch (error) {
        this.#options.counters.internalError(kind, error);
      }
    }
    return emptyAnswers[phase];
  }

  #tag(message: ProcessingMessage, profile: Profile): Buffer {
    const { tagger, limits } = this.#options;
    const facts = responseFacts(message, profile, this.#injected, limits.textBytes);
    return headersAnswer('responseHeaders', tagger.responseHeaders(facts));
  }

  #injectInto(message: ProcessingMessage, profile: Profile): Buffer {
    const answer = this.#options.tagger.requestHeaders(requestFacts(message, profile));
    const bytes = headersAnswer('requestHeaders', answer);
    this.#injected = answer.injected;
    return bytes;
  }

  #write(answer: Buffer): void {
    // A peer that sends without reading fills our memory if it is not held back.
    if (this.#call.write(answer)) return;
    this.#call.pause();
    this.#call.once('drain', () => this.#call.resume());
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#call.end();
  }
}

/** `observe` is a profile without ext_proc: on this stream it is a mistake of the config. */
function profileOf(value: string | Buffer | undefined): Profile | undefined {
  return value === 'full' || value === 'tag' ? value : undefined;
}
