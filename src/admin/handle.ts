import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Answer, type EventStream, problem, securityHeaders } from './answer.ts';
import { isLocalHostHeader } from './host-check.ts';
import { type AdminSources, routes } from './routes.ts';

export interface HandleOptions {
  sources: AdminSources;
  /** True where the port is on loopback: then a foreign `Host` is refused. */
  localOnly: boolean;
  /** A callback threw. */
  onError: (error: unknown) => void;
  /** The answer has no end: it may take as long as it likes. */
  onStream: () => void;
}

const longestUrl = 2048;

/** One request, one answer. Never rejects. */
export async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  options: HandleOptions,
): Promise<void> {
  let answer: Answer | EventStream;
  try {
    answer = answerTo(request, options);
  } catch (error) {
    options.onError(error);
    answer = problem(500, 'internal', 'The answer could not be made; the log says why.');
  }
  try {
    if ('open' in answer) {
      options.onStream();
      answer.open(response);
    } else await send(request, response, answer);
  } catch (error) {
    // A client that leaves is no error of ours; a body that cannot be made is, and its client sees it cut off.
    if (!isClientGone(error)) options.onError(error);
    response.destroy();
  }
}

function isClientGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ECONNRESET' || code === 'EPIPE';
}

function answerTo(
  { method, url = '/', headers }: IncomingMessage,
  { sources, localOnly }: HandleOptions,
): Answer | EventStream {
  if (localOnly && !isLocalHostHeader(headers.host))
    return problem(403, 'foreign_host', 'This port answers to localhost and loopback addresses only.');
  if (url.length > longestUrl) return problem(414, 'uri_too_long', `A URL may have ${longestUrl} characters.`);
  const parsed = URL.parse(url, 'http://localhost');
  const file = parsed === null ? undefined : sources.page?.files.get(parsed.pathname);
  const route = parsed === null ? undefined : routes.get(parsed.pathname);
  if (parsed === null || (route === undefined && file === undefined))
    return problem(404, 'not_found', `There is: ${[...routes.keys()].join(', ')}`);
  if (method !== 'GET' && method !== 'HEAD')
    return problem(405, 'method_not_allowed', 'This port only reads.', { allow: 'GET, HEAD' });
  if (file !== undefined || route === undefined) return file ?? problem(404, 'not_found', '');
  return route(sources, parsed.searchParams, method);
}

async function send(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const { status, body, contentType, headers } = answer;
  // A body that came along is not read: its connection ends with the answer.
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.writeHead(status, {
    ...securityHeaders,
    ...headers,
    ...(hasBody ? { connection: 'close' } : {}),
    'content-type': contentType,
    ...(typeof body === 'string' ? { 'content-length': Buffer.byteLength(body) } : {}),
  });
  if (request.method === 'HEAD') response.end();
  else if (typeof body === 'string') response.end(body);
  else await pipeline(Readable.from(body), response);
}
