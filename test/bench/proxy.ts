import { once } from 'node:events';
import {
  type Client,
  type ClientWritableStream,
  credentials,
  Metadata,
  makeGenericClientConstructor,
} from '@grpc/grpc-js';
import { reference } from '../support/wire.ts';
import { logMessage, type MeshSize, type Requests, responseHeaders } from './synthetic-traffic.ts';

/*
 * A process of its own in the place of an Envoy, so that its CPU is not counted: for each order that the parent sends it
 * lets so many requests be tagged and logs them, and answers when both are done.
 */
export interface Order extends Requests {
  port: number;
  mesh: MeshSize;
}

/** ext_proc streams open at once. */
const concurrency = 16;
const raw = (bytes: Buffer): Buffer => bytes;
const Constructor = makeGenericClientConstructor({}, 'any');
const metadata = new Metadata();
metadata.set('x-sidelight-profile', 'full');
/** A log stream's first message says who logs. */
const identifier = { node: { id: 'shop-1.default', cluster: 'shop' }, log_name: 'sidelight.full.2' };

class Proxy {
  readonly #client: Client;
  readonly #log: ClientWritableStream<Buffer>;

  constructor(port: number) {
    this.#client = new Constructor(`127.0.0.1:${port}`, credentials.createInsecure());
    const path = reference.accessLog['StreamAccessLogs']?.path ?? '';
    this.#log = this.#client.makeClientStreamRequest(path, raw, raw, () => undefined);
    this.#log.on('error', () => undefined);
  }

  async carryOut({ mesh, from, count, startMs, everyMs }: Order): Promise<void> {
    let next = from;
    const lane = async () => {
      while (next < from + count) {
        const n = next;
        next += 1;
        await this.#tag(responseHeaders(mesh, n, startMs + (n - from) * everyMs));
      }
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
    this.#log.write(logMessage(mesh, { from, count, startMs, everyMs }, from === 0 ? identifier : undefined));
  }

  async #tag(bytes: Buffer): Promise<void> {
    const path = reference.externalProcessor['Process']?.path ?? '';
    const call = this.#client.makeBidiStreamRequest(path, raw, raw, metadata);
    call.on('error', () => undefined);
    call.write(bytes);
    await once(call, 'data');
    // Envoy resets a stream after its last answer.
    call.cancel();
  }
}

const proxies = new Map<number, Proxy>();
process.on('message', (order: Order) => {
  const proxy = proxies.get(order.port) ?? new Proxy(order.port);
  proxies.set(order.port, proxy);
  void proxy.carryOut(order).then(() => process.send?.('done'));
});
process.on('disconnect', () => process.exit());
