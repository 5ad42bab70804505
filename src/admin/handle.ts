import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Answer, problem, securityHeaders } from './answer.ts';
import { isLocalHostHeader } from './host-check.ts';
import { type AdminSources, routes } from './routes.ts';

export interface HandleOptions {
  sources: AdminSources;
  /** True where the port is on loopback: then a foreign `Host` is refused. */
  localOnly: boolean;
  /** A callback threw, or something here did. */
  onError: (error: unknown) => void;
}

const longestUrl = 2048;

/** One request, one answer. Never rejects. */
export async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  options: HandleOptions,
): Promise<void> {
  let answer: Answer;
  try {
    answer = await answerTo(request, options);
  } catch (error) {
    options.onError(error);
    answer = problem(500, 'internal', 'The answer could not be made; the log says why.');
  }
  send(request, response, answer);
}

function answerTo(
  { method, url = '/', headers }: IncomingMessage,
  { sources, localOnly }: HandleOptions,
): Answer | Promise<Answer> {
  if (localOnly && !isLocalHostHeader(headers.host))
    return problem(403, 'foreign_host', 'This port answers to localhost and loopback addresses only.');
  if (url.length > longestUrl) return problem(414, 'uri_too_long', `A URL may have ${longestUrl} characters.`);
  const parsed = URL.parse(url, 'http://localhost');
  const route = parsed === null ? undefined : routes.get(parsed.pathname);
  if (parsed === null || route === undefined)
    return problem(404, 'not_found', `There is: ${[...routes.keys()].join(', ')}`);
  if (method !== 'GET' && method !== 'HEAD')
    return problem(405, 'method_not_allowed', 'This port only reads.', { allow: 'GET, HEAD' });
  return route(sources, parsed.searchParams);
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // A body that came along is not read: its connection ends with the answer.
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.writeHead(answer.status, {
    ...securityHeaders,
    ...answer.headers,
    ...(hasBody ? { connection: 'close' } : {}),
    'content-type': answer.contentType,
    'content-length': Buffer.byteLength(answer.body),
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}
