import http from 'node:http';
import { type ClientResult, type LoadClient, type RequestOptions, ResultBuilder } from './load.ts';

/** A keep-alive HTTP/1.1 client of a loopback address, with at most so many connections. */
export function http1Client(port: number, connections = 1, host = '127.0.0.1'): LoadClient {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const log: ClientResult[] = [];
  return {
    log,
    async request(path, options = {}) {
      const result = await send({ agent, host, port }, path, options);
      log.push(result);
      return result;
    },
    close: () => agent.destroy(),
  };
}

function send(
  to: { agent: http.Agent; host: string; port: number },
  path: string,
  options: RequestOptions,
): Promise<ClientResult> {
  const { promise, resolve } = Promise.withResolvers<ClientResult>();
  const result = new ResultBuilder();
  const { method = 'GET', headers = {} } = options;
  const request = http.request({ ...to, path, method, headers });
  let aborted = false;
  const abort = () => {
    aborted = true;
    request.destroy();
  };
  const timer = options.abortAfterMs === undefined ? undefined : setTimeout(abort, options.abortAfterMs);
  const finish = (error?: Error) => {
    clearTimeout(timer);
    resolve(result.finish(aborted ? 'aborted' : error && describe(error)));
  };
  request.on('error', finish);
  request.on('response', (response) => {
    result.head(response.statusCode as number, response.headers);
    response.on('data', (chunk: Buffer) => {
      result.body(chunk);
      if (options.abortInBody) abort();
    });
    response.on('error', finish);
    response.on('end', () => {
      result.trailers(response.trailers);
      finish();
    });
  });
  request.end(options.body);
  return promise;
}

function describe(error: Error & { code?: string }): string {
  return error.code ?? error.message;
}
