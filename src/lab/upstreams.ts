import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import type net from 'node:net';
import { act, behaviourFromPath, type Handler } from './behaviour.ts';
import { freePort } from './free-port.ts';

export interface UpstreamsOptions {
  /** Loopback addresses, all on one port. Linux needs no set-up for 127.0.0.11 and the like. */
  ips: readonly string[];
  /** Absent: one that is free on all of them. */
  port?: number;
  /** `http2` is h2c with prior knowledge, for gRPC. */
  protocol?: 'http1' | 'http2';
  /** After so long without a request the server closes the connection, ms; HTTP/1.1 only. */
  keepAliveMs?: number;
  /** Absent: the path tells. */
  handler?: Handler;
}

/** One test server on one IP. */
class Upstream {
  readonly ip: string;
  readonly server: http.Server | http2.Http2Server;
  readonly sockets = new Set<net.Socket>();
  requests = 0;
  connections = 0;
  handler: Handler;

  constructor(ip: string, options: UpstreamsOptions) {
    this.ip = ip;
    this.handler = options.handler ?? behaviourFromPath;
    this.server = options.protocol === 'http2' ? http2.createServer() : http.createServer();
    if (this.server instanceof http.Server) this.server.keepAliveTimeout = options.keepAliveMs ?? 60_000;
    this.server.on('connection', (socket: net.Socket) => this.#track(socket));
    this.server.on('request', (request: http.IncomingMessage, response: http.ServerResponse) =>
      this.#serve(request, response),
    );
    this.server.on('sessionError', ignore);
  }

  #track(socket: net.Socket): void {
    this.connections += 1;
    this.sockets.add(socket);
    socket.on('error', ignore);
    socket.once('close', () => this.sockets.delete(socket));
  }

  #serve(request: http.IncomingMessage, response: http.ServerResponse): void {
    this.requests += 1;
    request.on('error', ignore);
    response.on('error', ignore);
    request.resume();
    const { method = '', url: path = '', headers } = request;
    act(this.handler({ ip: this.ip, method, path, headers, count: this.requests }), response);
  }
}

/** A client that goes away is what these servers are for. */
function ignore(): void {}

/** Test servers on several loopback IPs and one port, each with its own behaviour and counts. */
export class Upstreams {
  readonly port: number;
  readonly #byIp: ReadonlyMap<string, Upstream>;

  private constructor(port: number, upstreams: readonly Upstream[]) {
    this.port = port;
    this.#byIp = new Map(upstreams.map((upstream) => [upstream.ip, upstream]));
  }

  static async start(options: UpstreamsOptions): Promise<Upstreams> {
    const port = options.port ?? (await freePort(options.ips));
    const upstreams = options.ips.map((ip) => new Upstream(ip, options));
    const all = new Upstreams(port, upstreams);
    try {
      for (const { ip } of upstreams) await all.up(ip);
    } catch (error) {
      await all.close();
      throw error;
    }
    return all;
  }

  /** Every `ip:port`. */
  get addresses(): string[] {
    return [...this.#byIp.keys()].map((ip) => `${ip}:${this.port}`);
  }

  /** Sets the behaviour of one IP, or of all. */
  handle(handler: Handler, ip?: string): void {
    for (const upstream of this.#selected(ip)) upstream.handler = handler;
  }

  /** Requests that reached the server, of one IP or of all. */
  requests(ip?: string): number {
    return this.#selected(ip).reduce((sum, upstream) => sum + upstream.requests, 0);
  }

  /** Connections accepted since the start. */
  connections(ip?: string): number {
    return this.#selected(ip).reduce((sum, upstream) => sum + upstream.connections, 0);
  }

  openConnections(ip?: string): number {
    return this.#selected(ip).reduce((sum, upstream) => sum + upstream.sockets.size, 0);
  }

  /** Closes every open connection, as a server does at the end of its keep-alive time. */
  cycle(ip?: string): void {
    for (const upstream of this.#selected(ip)) for (const socket of upstream.sockets) socket.destroy();
  }

  /** Listens (again). */
  async up(ip: string): Promise<void> {
    const { server } = this.#one(ip);
    if (server.listening) return;
    server.listen({ host: ip, port: this.port, exclusive: true });
    await once(server, 'listening');
  }

  /** Stops listening and breaks what is open: connecting is refused from then on. */
  async down(ip: string): Promise<void> {
    const { server, sockets } = this.#one(ip);
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byIp.keys()].map((ip) => this.down(ip)));
  }

  #selected(ip: string | undefined): Upstream[] {
    return ip === undefined ? [...this.#byIp.values()] : [this.#one(ip)];
  }

  #one(ip: string): Upstream {
    const upstream = this.#byIp.get(ip);
    if (!upstream) throw new Error(`no upstream on ${ip}`);
    return upstream;
  }
}
