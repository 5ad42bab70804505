import { once } from 'node:events';
import http2 from 'node:http2';
import { type ClientResult, type LoadClient, type RequestOptions, ResultBuilder } from './load.ts';

/** An HTTP/2 client: every request is a stream of one session. */
export async function http2Client(port: number): Promise<LoadClient> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  await once(session, 'connect');
  session.on('error', () => {});
  const log: ClientResult[] = [];
  return {
    log,
    async request(path, options = {}) {
      const result = await send(session, path, options);
      log.push(result);
      return result;
    },
    close: () => session.destroy(),
  };
}

/** The headers and the empty message of a gRPC call. */
export const grpcCall: RequestOptions = {
  method: 'POST',
  headers: { 'content-type': 'application/grpc', te: 'trailers' },
  body: '\0\0\0\0\0',
};

function send(session: http2.ClientHttp2Session, path: string, options: RequestOptions): Promise<ClientResult> {
  const { promise, resolve } = Promise.withResolvers<ClientResult>();
  const result = new ResultBuilder();
  const stream = session.request({ ':path': path, ':method': options.method ?? 'GET', ...options.headers });
  let aborted = false;
  let error: string | undefined;
  const abort = () => {
    aborted = true;
    stream.close(http2.constants.NGHTTP2_CANCEL);
  };
  const timer = options.abortAfterMs === undefined ? undefined : setTimeout(abort, options.abortAfterMs);
  stream.on('response', (headers) => result.head(headers[':status'] ?? 0, headers));
  stream.on('trailers', (trailers) => result.trailers(trailers as ClientResult['headers']));
  stream.on('data', (chunk: Buffer) => {
    result.body(chunk);
    if (options.abortInBody) abort();
  });
  stream.on('error', (failure: Error & { code?: string }) => {
    error = failure.code ?? failure.message;
  });
  stream.on('close', () => {
    clearTimeout(timer);
    resolve(result.finish(aborted ? 'aborted' : error));
  });
  stream.end(options.body);
  return promise;
}
