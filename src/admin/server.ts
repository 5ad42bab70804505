import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { SidelightError } from '../lib/errors.ts';
import { ipWithPort } from '../lib/ip.ts';
import { handle } from './handle.ts';
import { isLoopback } from './host-check.ts';
import type { AdminSources } from './routes.ts';

/** What one client may hold, and for how long. */
export interface AdminLimits {
  connections: number;
  headerBytes: number;
  /** For the whole of a request, ms. */
  requestMs: number;
  /** Without a byte either way, ms: a client that does not read its answer is let go. */
  idleMs: number;
  /** From a request to the end of its answer, ms: nor may it be read byte by byte for ever. */
  answerMs: number;
}

export const defaultAdminLimits: AdminLimits = {
  connections: 160,
  headerBytes: 8192,
  requestMs: 10_000,
  idleMs: 30_000,
  answerMs: 60_000,
};

export interface AdminOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  sources: AdminSources;
  onError: (error: unknown) => void;
  limits?: AdminLimits;
}

export interface Admin {
  /** The port that is listened on. */
  port: number;
  /** Answers what is being answered, and stops; what takes longer than `withinMs` is cut off. */
  close: (withinMs: number) => Promise<void>;
}

/** Listens. Rejects with `listen_failed`, which names the address, if it cannot. */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const { host, port, sources, onError } = options;
  const limits = options.limits ?? defaultAdminLimits;
  const localOnly = isLoopback(host);
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      requestTimeout: limits.requestMs,
      headersTimeout: limits.requestMs,
      keepAliveTimeout: 5000,
      connectionsCheckingInterval: Math.min(1000, limits.requestMs),
    },
    (request, response) => {
      const cut = setTimeout(() => response.destroy(), limits.answerMs);
      response.once('close', () => clearTimeout(cut));
      const onStream = () => clearTimeout(cut);
      void handle(request, response, { sources, localOnly, onError, onStream });
    },
  );
  server.maxConnections = limits.connections;
  server.setTimeout(limits.idleMs);
  server.on('clientError', refuse);
  await listening(server, host, port);
  server.on('error', onError);
  return { port: boundPort(server), close: (withinMs) => close(server, sources, withinMs) };
}

/** What is not HTTP, or too much of it, gets a short answer if the socket still takes one. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy());
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: Error): void =>
      reject(new SidelightError('listen_failed', { path: ipWithPort(host, port), expected: 'a free address', cause }));
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      resolve();
    });
  });
}

function boundPort(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function close(server: Server, sources: AdminSources, withinMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), withinMs);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    sources.page?.viewers.close();
    server.closeIdleConnections();
  });
}
