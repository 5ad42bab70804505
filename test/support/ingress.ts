import { type Client, credentials, Metadata, makeGenericClientConstructor } from '@grpc/grpc-js';
import type { LogSink, LogStream } from '../../src/ingress/log-stream.ts';
import { createIngress, type Ingress, type IngressOptions } from '../../src/ingress/server.ts';
import type { Tagger } from '../../src/ingress/tagger.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import type { RequestFacts, ResponseFacts } from '../../src/model/tag.ts';
import type { PinVerdict } from '../../src/model/verdict.ts';
import { limits, reference } from './wire.ts';

const raw = (bytes: Buffer): Buffer => bytes;

/** A sink that remembers all it was told. */
class RecordingSink implements LogSink {
  readonly streams: LogStream[] = [];
  readonly closedIds: number[] = [];
  readonly received: { stream: LogStream; entry: LogEntry; receivedMs: number }[] = [];
  /** What `entries` returns: a promise holds the stream back. */
  wait: () => void | Promise<void> = () => undefined;

  opened(stream: LogStream): void {
    this.streams.push(stream);
  }
  entries(stream: LogStream, entries: readonly LogEntry[], receivedMs: number): void | Promise<void> {
    for (const entry of entries) this.received.push({ stream, entry, receivedMs });
    return this.wait();
  }
  closed({ id }: LogStream): void {
    this.closedIds.push(id);
  }
}

/** A tagger that remembers the facts and answers with one tag and one header. */
class RecordingTagger implements Tagger {
  readonly requests: RequestFacts[] = [];
  readonly responses: ResponseFacts[] = [];
  requestHeaders(facts: RequestFacts) {
    this.requests.push(facts);
    const injected = { traceId: 't1', spanId: 's1', parentSpanId: undefined, sampled: true };
    return { metadata: { trace_id: 't1' }, setHeaders: [['traceparent', 'made-up']] as const, injected };
  }
  responseHeaders(facts: ResponseFacts) {
    this.responses.push(facts);
    return { metadata: { profile: facts.profile }, setHeaders: [] };
  }
}

export const current: PinVerdict = { pin: 'current', reason: undefined, leftAtMs: undefined, source: 'dns' };

/** An ingress on a free port with everything recorded; `events` counts by `what kind detail`. */
export class TestIngress {
  readonly sink = new RecordingSink();
  readonly tagger = new RecordingTagger();
  readonly events: Record<string, number> = {};
  /** Every ext_proc answer, as bytes. */
  readonly rawAnswers: Buffer[] = [];
  readonly #clients: Client[] = [];
  ingress!: Ingress;
  port = 0;

  static async start(overrides: Partial<IngressOptions> = {}): Promise<TestIngress> {
    const test = new TestIngress();
    test.ingress = createIngress({
      limits: { ...limits, logStreams: 100, processStreams: 100 },
      tagger: test.tagger,
      logSink: test.sink,
      counters: {
        streamOpened: (kind) => test.#count(`opened ${kind}`),
        streamClosed: (kind) => test.#count(`closed ${kind}`),
        message: (kind) => test.#count(`message ${kind}`),
        decodeError: (kind) => test.#count(`decodeError ${kind}`),
        refused: (kind, reason, count) => test.#count(`refused ${kind} ${reason}`, count),
        failOpen: () => test.#count('failOpen'),
        answered: () => undefined,
        internalError: (kind) => test.#count(`internalError ${kind}`),
      },
      now: () => 1_700_000_000_000,
      monotonicMs: () => 0,
      random: () => 0.5,
      logStreamMaxAgeMs: 60_000,
      ...overrides,
    });
    test.port = await test.ingress.bind('127.0.0.1:0');
    return test;
  }

  #count(event: string, count = 1): void {
    this.events[event] = (this.events[event] ?? 0) + count;
  }

  client(): Client {
    return this.clientOf(this.port);
  }

  /** One that goes by another port. */
  clientOf(port: number): Client {
    const Constructor = makeGenericClientConstructor({}, 'any');
    const client = new Constructor(`127.0.0.1:${port}`, credentials.createInsecure());
    this.#clients.push(client);
    return client;
  }

  /** Opens a log stream that sends bytes. `status` resolves to the status that ends it. */
  logStream(client = this.client()) {
    const ended = Promise.withResolvers<{ code: number; details: string }>();
    const call = client.makeClientStreamRequest(
      reference.accessLog['StreamAccessLogs']?.path ?? '',
      raw,
      raw,
      (error) =>
        ended.resolve(error === null ? { code: 0, details: '' } : { code: error.code, details: error.details }),
    );
    call.on('error', () => undefined);
    return { call, status: ended.promise };
  }

  /** Opens an ext_proc stream that sends bytes; answers are decoded by the reference. */
  processStream(headers: Record<string, string> = { 'x-sidelight-profile': 'full' }, client = this.client()) {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const call = client.makeBidiStreamRequest(
      reference.externalProcessor['Process']?.path ?? '',
      raw,
      (bytes: Buffer) => {
        this.rawAnswers.push(bytes);
        return reference.processingResponse.deserialize(bytes);
      },
      metadata,
    );
    // biome-ignore lint/suspicious/noExplicitAny: the reference decoder gives plain objects.
    const answers: any[] = []; // oxlint-disable-line typescript/no-explicit-any
    const ended = Promise.withResolvers<number>();
    call.on('data', (answer) => answers.push(answer));
    call.on('status', ({ code }) => ended.resolve(code));
    call.on('error', () => undefined);
    return { call, answers, status: ended.promise };
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.ingress.drain(0);
  }
}

export const logBytes = (message: object): Buffer => reference.logMessage.serialize(message);
export const processBytes = (message: object): Buffer => reference.processingRequest.serialize(message);

/** The first message of a log stream: who logs, and one entry for each path. */
export function firstLog(paths: string[], log_name = 'sidelight.full'): Buffer {
  return logBytes({ identifier: { node: { id: 'n1' }, log_name }, ...httpLogs(paths) });
}

export function httpLogs(paths: string[]): object {
  return { http_logs: { log_entry: paths.map((path) => ({ request: { path } })) } };
}
