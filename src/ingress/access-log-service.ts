import { status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { DecodeLimits } from '../decode/limits.ts';
import { decodeLogMessage } from '../decode/log-message.ts';
import { wireServices } from '../decode/wire.ts';
import { type LogCall, type LogRespond, LogSession, type LogSessionOptions } from './log-session.ts';

export interface AccessLogOptions extends LogSessionOptions {
  limits: DecodeLimits & { logStreams: number };
}

const kind = 'access_log';

/** The method as Envoy calls it. Reading never throws: what cannot be decoded arrives as an error to be answered. */
export function accessLogDefinition(limits: DecodeLimits) {
  const passBytes = (bytes: Buffer): Buffer => bytes;
  return {
    StreamAccessLogs: {
      path: wireServices.accessLog['StreamAccessLogs']?.path ?? '',
      requestStream: true,
      responseStream: false,
      requestSerialize: passBytes,
      requestDeserialize: (bytes: Buffer) => decodeLogMessage(bytes, limits),
      responseSerialize: passBytes,
      responseDeserialize: passBytes,
    },
  };
}

/** `envoy.service.accesslog.v3.AccessLogService`: off the request path, so it may refuse. */
export class AccessLogService {
  readonly #options: AccessLogOptions;
  readonly #sessions = new Set<LogSession>();
  #lastId = 0;

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  get implementation(): UntypedServiceImplementation {
    return { StreamAccessLogs: (call: LogCall, respond: LogRespond) => this.#open(call, respond) };
  }

  /** Ends every stream with OK, after its next message or within `withinMs`. */
  endAll(withinMs: number): void {
    for (const session of this.#sessions) session.endSoon(withinMs);
  }

  #open(call: LogCall, respond: LogRespond): void {
    // A reset is no error of ours; without a listener it would end the process.
    call.on('error', () => undefined);
    const { counters, limits } = this.#options;
    if (this.#sessions.size >= limits.logStreams) {
      counters.refused(kind, 'too_many_streams', 1);
      respond({
        code: status.RESOURCE_EXHAUSTED,
        details: `${limits.logStreams} log streams are open, the most allowed`,
      });
      return;
    }
    this.#lastId += 1;
    const session = new LogSession(call, respond, this.#lastId, this.#options);
    this.#sessions.add(session);
    counters.streamOpened(kind);
    call.once('close', () => {
      this.#sessions.delete(session);
      counters.streamClosed(kind);
      session.closed();
    });
  }
}
