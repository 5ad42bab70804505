import { type ServerReadableStream, type sendUnaryData, status } from '@grpc/grpc-js';
import type { LogMessage, LogMessageResult } from '../decode/log-message.ts';
import { shortText } from '../lib/short-text.ts';
import type { IngressCounters, RefusedReason } from './counters.ts';
import { type LogSink, type LogStream, logConfigOfName } from './log-stream.ts';

export interface LogSessionOptions {
  sink: LogSink;
  counters: IngressCounters;
  now: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
  /** Age from which a stream is ended at its next message, ±20 %: Envoy opens a new one, balanced anew. */
  maxAgeMs: number;
}

export type LogCall = ServerReadableStream<LogMessageResult, Buffer>;
export type LogRespond = sendUnaryData<Buffer>;

const kind = 'access_log';
const ageJitter = 0.2;
/** An empty StreamAccessLogsResponse. */
const emptyResponse = Buffer.alloc(0);

/** At a drain. Envoy flushes its buffer every second by default: who was silent for longer has nothing under way. */
const quietMs = 1500;

/**
 * One log stream. Its legal transitions:
 *
 *     waiting ── first message, with a log name of ours ──▶ open       the sink hears of it
 *     open ── message ──▶ open                                         its entries go to the sink
 *     waiting, open ── what cannot be taken ──▶ refused                INVALID_ARGUMENT or RESOURCE_EXHAUSTED
 *     open ── maximum age ──▶ old
 *     old ── the next message ──▶ ended                                OK
 *     waiting ── maximum age ──▶ ended                                 OK; Envoy opens none without a message
 *     waiting, open, old ── drain ──▶ draining
 *     draining ── the next message, or a quiet time ──▶ ended          OK
 *     any ── Envoy's end, or its reset ──▶ ended
 *
 * An old stream that is quiet stays: Envoy opens a new one not before its next entry, so without a stream an idle Envoy
 * would look as if it were gone (1.37, 1.40; test/e2e/ingress.test.ts), and what carries nothing needs no balance.
 *
 * It ends just after a message, when Envoy has flushed: what Envoy sends before it hears of the end is lost. Envoy 1.40
 * at 500 requests/s, 38 ends: none of 12,000 entries lost so, 131 when ended at once. test/e2e/ingress.test.ts.
 */
export class LogSession {
  readonly #call: LogCall;
  readonly #respond: LogRespond;
  readonly #id: number;
  readonly #options: LogSessionOptions;
  #stream: LogStream | undefined;
  #endsAtMessage = false;
  #answered = false;
  #refused = false;
  #timer: NodeJS.Timeout;

  constructor(call: LogCall, respond: LogRespond, id: number, options: LogSessionOptions) {
    this.#call = call;
    this.#respond = respond;
    this.#id = id;
    this.#options = options;
    const jitter = 1 + ageJitter * (2 * options.random() - 1);
    this.#timer = setTimeout(() => this.#old(), options.maxAgeMs * jitter);
    call.on('data', (result: LogMessageResult) => this.#message(result));
    call.on('end', () => this.#end());
  }

  /** Ends the stream with OK after its next message, or when none came for `withinMs`. */
  endSoon(withinMs: number): void {
    this.#endsAtMessage = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), Math.min(withinMs, quietMs));
  }

  /** The stream is gone, whichever side ended it. */
  closed(): void {
    this.#answered = true;
    clearTimeout(this.#timer);
    const stream = this.#stream;
    if (stream !== undefined) this.#guard(() => this.#options.sink.closed(stream));
  }

  #old(): void {
    if (this.#stream === undefined) this.#end();
    else this.#endsAtMessage = true;
  }

  #message(result: LogMessageResult): void {
    if (this.#refused) return;
    const { counters } = this.#options;
    counters.message(kind);
    if (result.ok) return this.#entries(result.message);
    const { reason, text } = result.error;
    if (reason !== 'malformed') return this.#refuse(status.RESOURCE_EXHAUSTED, reason, text);
    counters.decodeError(kind, result.error);
    this.#fail(status.INVALID_ARGUMENT, text);
  }

  #entries(message: LogMessage): void {
    this.#stream ??= this.#open(message.identifier);
    const stream = this.#stream;
    if (stream === undefined) return;
    if (message.refusedEntries > 0) this.#options.counters.refused(kind, 'tagsPerEntry', message.refusedEntries);
    const { sink, now } = this.#options;
    this.#guard(() => this.#holdBack(sink.entries(stream, message.entries, now())));
    if (this.#endsAtMessage) this.#end();
  }

  #open(identifier: LogMessage['identifier']): LogStream | undefined {
    if (identifier === undefined) {
      this.#refuse(status.INVALID_ARGUMENT, 'no_identifier', 'the first message of a log stream has no identifier');
      return undefined;
    }
    const config = logConfigOfName(identifier.logName);
    if (config === undefined) {
      const expected = 'sidelight.full or sidelight.observe, or one of them with a version, as in sidelight.full.2';
      const text = `log_name: found ${shortText(identifier.logName)}: expected ${expected}`;
      this.#refuse(status.INVALID_ARGUMENT, 'unknown_profile', text);
      return undefined;
    }
    const stream = { id: this.#id, ...config, reporter: identifier.reporter, peer: this.#call.getPeer() };
    this.#guard(() => this.#options.sink.opened(stream));
    return stream;
  }

  #holdBack(settled: void | Promise<void>): void {
    if (settled === undefined) return;
    this.#call.pause();
    settled
      .catch((error: unknown) => this.#options.counters.internalError(kind, error))
      .finally(() => this.#call.resume());
  }

  #refuse(code: status, reason: RefusedReason, text: string): void {
    this.#options.counters.refused(kind, reason, 1);
    this.#fail(code, text);
  }

  #fail(code: status, text: string): void {
    this.#refused = true;
    if (this.#answered) return;
    this.#answered = true;
    // grpc-js percent-encodes the text, which throws on half a character.
    this.#respond({ code, details: text.toWellFormed() });
  }

  #end(): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#respond(null, emptyResponse);
  }

  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#options.counters.internalError(kind, error);
    }
  }
}
