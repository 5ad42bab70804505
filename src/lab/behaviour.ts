import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { Http2ServerResponse } from 'node:http2';

/** What a test upstream does with one request. Times are ms. */
export type Behaviour =
  | { kind: 'respond'; status: number; headers?: Record<string, string>; body?: string; delayMs?: number }
  /** Breaks the connection (HTTP/1.1: RST) or the stream (HTTP/2: RST_STREAM with this code) before any header. */
  | { kind: 'reset'; http2Code?: number; delayMs?: number }
  /** Sends headers and a part of the promised body, then breaks the connection. */
  | { kind: 'die_in_body'; afterMs?: number }
  /** A body in pieces, every so often, for so long. */
  | { kind: 'trickle'; everyMs: number; forMs: number }
  /** Never answers. */
  | { kind: 'hang' }
  /** Answers with what is not HTTP; HTTP/1.1 only. */
  | { kind: 'garbage' }
  /** A gRPC answer with this status in its trailers, or with nothing but headers; absent: it ends without a status. */
  | { kind: 'grpc'; grpcStatus?: number; trailersOnly?: boolean; delayMs?: number };

export interface UpstreamRequest {
  ip: string;
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** How many requests this IP has had, this one included. */
  count: number;
}

export type Handler = (request: UpstreamRequest) => Behaviour;

/**
 * Reads the behaviour from the path: `/status/503`, `/slow/300`, `/reset`, `/die-in-body`, `/trickle/4000` (for 4 s),
 * `/hang`, `/garbage`, `/grpc/14`, `/grpc-no-status`; anything else is 200 at once.
 */
export const behaviourFromPath: Handler = ({ path }) => {
  const [name = '', number = ''] = path.split('?', 1).join('').split('/').slice(1);
  switch (name) {
    case 'status':
      return { kind: 'respond', status: Number(number) };
    case 'slow':
      return { kind: 'respond', status: 200, delayMs: Number(number) };
    case 'reset':
      return { kind: 'reset' };
    case 'die-in-body':
      return { kind: 'die_in_body' };
    case 'trickle':
      return { kind: 'trickle', everyMs: 20, forMs: Number(number) };
    case 'hang':
      return { kind: 'hang' };
    case 'garbage':
      return { kind: 'garbage' };
    case 'grpc':
      return { kind: 'grpc', grpcStatus: Number(number) };
    case 'grpc-no-status':
      return { kind: 'grpc' };
    default:
      return { kind: 'respond', status: 200 };
  }
};

/** HTTP/2 `INTERNAL_ERROR`. */
const internalError = 2;

/** One empty gRPC message: not compressed, length 0. */
const emptyGrpcMessage = Buffer.alloc(5);

/** Node's HTTP/2 compatibility API is meant to look like `ServerResponse`, and does here. */
export function act(behaviour: Behaviour, response: ServerResponse): void {
  switch (behaviour.kind) {
    case 'respond':
      return later(behaviour.delayMs, response, () => respond(behaviour, response));
    case 'reset':
      return later(behaviour.delayMs, response, () => breakOff(response, behaviour.http2Code));
    case 'die_in_body':
      response.writeHead(200, { 'content-length': '1000' });
      response.write('x'.repeat(100));
      return later(behaviour.afterMs ?? 50, response, () => breakOff(response));
    case 'trickle':
      return trickle(behaviour, response);
    case 'hang':
      return;
    case 'garbage':
      response.socket?.end('this is not HTTP\r\n\r\n');
      return;
    case 'grpc':
      return later(behaviour.delayMs, response, () => respondGrpc(behaviour, response));
  }
}

function later(ms: number | undefined, response: ServerResponse, what: () => void): void {
  if (ms === undefined) return what();
  const timer = setTimeout(what, ms);
  response.once('close', () => clearTimeout(timer));
}

function respond(behaviour: Extract<Behaviour, { kind: 'respond' }>, response: ServerResponse): void {
  const body = behaviour.body ?? `${behaviour.status}\n`;
  response.writeHead(behaviour.status, { 'content-length': String(Buffer.byteLength(body)), ...behaviour.headers });
  response.end(body);
}

function respondGrpc(behaviour: Extract<Behaviour, { kind: 'grpc' }>, response: ServerResponse): void {
  const status = behaviour.grpcStatus === undefined ? {} : { 'grpc-status': String(behaviour.grpcStatus) };
  const contentType = { 'content-type': 'application/grpc' };
  if (behaviour.trailersOnly) {
    response.writeHead(200, { ...contentType, ...status });
    response.end();
    return;
  }
  response.writeHead(200, contentType);
  response.write(emptyGrpcMessage);
  response.addTrailers(status);
  response.end();
}

function trickle(behaviour: Extract<Behaviour, { kind: 'trickle' }>, response: ServerResponse): void {
  response.writeHead(200);
  const beat = setInterval(() => response.write('.'), behaviour.everyMs);
  const stop = () => {
    clearInterval(beat);
    clearTimeout(end);
  };
  const end = setTimeout(() => {
    // Node resets an HTTP/2 stream that is written to after its end.
    stop();
    response.end();
  }, behaviour.forMs);
  response.once('close', stop);
}

function breakOff(response: ServerResponse, http2Code = internalError): void {
  if (response instanceof Http2ServerResponse) response.stream.close(http2Code);
  else response.socket?.resetAndDestroy();
}
