import { connect, createServer, type Socket } from 'node:net';
import {
  type Client,
  type ClientDuplexStream,
  type ClientWritableStream,
  credentials,
  Metadata,
  makeGenericClientConstructor,
} from '@grpc/grpc-js';
import { answered } from './log-client.ts';
import { reference, struct } from './wire.ts';

const raw = (bytes: Buffer): Buffer => bytes;

/** How many rounds a stream or a reader that does nothing stays, before the flood itself cuts it. */
const roundsLeftOpen = 4;
const logStreamsPerRound = 12;
const entriesPerStream = 30;
/** Of a node's id: much, and within the longest message. */
const longId = 'd'.repeat(300_000);
const processStreamsPerRound = 24;
const slowReadersPerRound = 3;

/** Peers that mean no good, or whose mesh has no end: nothing that they say is ever said twice. */
export class Flood {
  readonly #client: Client;
  readonly #httpPort: number;
  readonly #leftOpen: (() => void)[][] = [];
  #round = 0;
  #distinct = 0;

  constructor(grpcPort: number, httpUrl: string) {
    const Constructor = makeGenericClientConstructor({}, 'any');
    // A connection of its own, so that its streams keep nobody else's waiting on this side.
    this.#client = new Constructor(`127.0.0.1:${grpcPort}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
    });
    this.#httpPort = Number(new URL(httpUrl).port);
  }

  /** One round; resolves when all that was to be answered is. */
  async round(): Promise<void> {
    this.#round += 1;
    const open: (() => void)[] = [];
    this.#leftOpen.push(open);
    const answers: Promise<void>[] = [];
    for (let stream = 0; stream < logStreamsPerRound; stream += 1) answers.push(this.#logStream(stream, open));
    for (let stream = 0; stream < processStreamsPerRound; stream += 1) answers.push(this.#processStream(stream, open));
    for (let reader = 0; reader < slowReadersPerRound; reader += 1) open.push(this.#slowReader());
    await Promise.all(answers);
    if (this.#leftOpen.length > roundsLeftOpen) for (const cut of this.#leftOpen.shift() ?? []) cut();
  }

  close(): void {
    for (const cut of this.#leftOpen.flat()) cut();
    this.#client.close();
  }

  /** Of every three streams one is ended, one is cut and one is left open. */
  async #logStream(index: number, open: (() => void)[]): Promise<void> {
    const ended = Promise.withResolvers<void>();
    const path = reference.accessLog['StreamAccessLogs']?.path ?? '';
    const call: ClientWritableStream<Buffer> = this.#client.makeClientStreamRequest(path, raw, raw, () =>
      ended.resolve(),
    );
    call.on('error', () => undefined);
    const taken = (message: object) => Promise.race([written(call, message), ended.promise]);
    const identifier = { node: this.#node(), log_name: 'sidelight.full' };
    await taken({ identifier });
    await taken({ http_logs: { log_entry: many(entriesPerStream, () => this.#attemptWithoutEnd()) } });
    await taken({ http_logs: { log_entry: [this.#keyless(), this.#huge(), this.#whole()].flat() } });
    await taken({ tcp_logs: { log_entry: many(10, () => this.#tcpPeriodic()) } });
    if (index % 3 === 0) call.end();
    else if (index % 3 === 1) call.cancel();
    else {
      open.push(() => call.cancel());
      return;
    }
    await ended.promise;
  }

  /** Half of them are reset after their answer, half are left open. */
  async #processStream(index: number, open: (() => void)[]): Promise<void> {
    const metadata = new Metadata();
    metadata.set('x-sidelight-profile', index % 2 === 0 ? 'tag' : 'full');
    metadata.set('x-sidelight-inject', 'true');
    const path = reference.externalProcessor['Process']?.path ?? '';
    const call: ClientDuplexStream<Buffer, Buffer> = this.#client.makeBidiStreamRequest(path, raw, raw, metadata);
    const reply = Promise.withResolvers<void>();
    call.on('data', () => reply.resolve());
    call.on('status', () => reply.resolve());
    call.on('error', () => undefined);
    call.write(reference.processingRequest.serialize(this.#responseHeaders()));
    await reply.promise;
    if (index % 4 < 2) call.cancel();
    else open.push(() => call.cancel());
  }

  /** Asks for everything and reads none of it. */
  #slowReader(): () => void {
    const socket: Socket = connect(this.#httpPort, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.pause();
    socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n');
    return () => socket.destroy();
  }

  #name(what: string): string {
    this.#distinct += 1;
    return `${what}-${this.#round}-${this.#distinct}`;
  }

  #node(): object {
    const pod = this.#name('a-pod-with-a-long-name');
    const namespace = this.#name('a-namespace-with-a-long-name');
    return {
      id: `sidecar~10.0.0.1~${pod}.${namespace}~${longId}`,
      cluster: this.#name('node-cluster'),
      metadata: struct({ WORKLOAD_NAME: this.#name('workload'), NAMESPACE: namespace, NAME: pod }),
    };
  }

  #entry(overrides: Record<string, unknown>, tags: Record<string, string>): object {
    const key = this.#name('key');
    const [upstreamEnd] = answered({
      key,
      cluster: this.#name('outbound|80||host'),
      startMs: Date.now(),
      ip: `10.${this.#distinct % 200}.${this.#distinct % 251}.${this.#distinct % 241}`,
      connectionId: String(this.#distinct),
    });
    const { common_properties: common, ...rest } = upstreamEnd ?? { common_properties: { custom_tags: {} } };
    const traceparent = `00-${this.#distinct.toString(16).padStart(32, '0')}-00000000000000aa-01`;
    const custom_tags = { ...common.custom_tags, traceparent, trace_id: this.#name('trace'), ...tags };
    return {
      ...rest,
      request: { path: `/${this.#name('path')}`, authority: this.#name('host'), request_id: this.#name('request') },
      common_properties: { ...common, route_name: this.#name('route'), custom_tags, ...overrides },
    };
  }

  #attemptWithoutEnd(): object {
    return this.#entry({}, {});
  }

  #keyless(): object {
    return this.#entry({ access_log_type: 'DownstreamEnd', upstream_request_attempt_count: 0 }, { key: '' });
  }

  #huge(): object {
    const value = 'v'.repeat(7000);
    const tags = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [this.#name(`tag${index}`), value]));
    return this.#entry({ upstream_transport_failure_reason: this.#name('reason') + value }, tags);
  }

  #whole(): object[] {
    return answered({ key: this.#name('whole'), cluster: this.#name('cluster'), startMs: Date.now(), status: 503 });
  }

  #tcpPeriodic(): object {
    const overrides = { access_log_type: 'TcpPeriodic', stream_id: this.#name('tcp') };
    return { ...this.#entry(overrides, { duration_ms: '60000' }), connection_properties: { sent_bytes: 10 } };
  }

  #responseHeaders(): object {
    const attributes = struct({
      'xds.cluster_name': this.#name('tagged'),
      'xds.node.id': `sidecar~10.0.0.1~${this.#name('a-tagged-pod-name')}.some-long-namespace~${longId}`,
      'upstream.address': `10.1.${this.#distinct % 251}.${this.#distinct % 241}:8080`,
      'request.path': `/${this.#name('path')}`,
      'request.host': this.#name('host'),
      "request.headers['traceparent']": this.#name('traceparent'),
      'response.code': 200,
    });
    return { response_headers: {}, attributes: { 'envoy.filters.http.ext_proc': attributes } };
  }
}

function many<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

/** Resolves when the other side took it: a flood that piles up on this side would be none. */
function written(call: ClientWritableStream<Buffer>, message: object): Promise<void> {
  return new Promise((resolve) => void call.write(reference.logMessage.serialize(message), () => resolve()));
}

/** Takes every connection and says nothing. */
export async function startSilentReceiver(): Promise<{ url: string; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
