import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { z } from 'zod';
import { SidelightError } from '../../lib/errors.ts';
import { type AccessSource, readAccess } from './access.ts';
import { startDeadline } from './deadline.ts';

/** A slice has 1,000 endpoints at most, of some 400 bytes each, and a page of them `pageSize` slices. */
const maxBytes = 64 * 1024 * 1024;

/** The server answered, and said no. */
export class ApiRefusal extends Error {
  /** Of HTTP. 410: the version that was asked for is forgotten. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface ApiClient {
  /**
   * A whole answer, in time; `accept`: the form in which it is asked for, JSON unless told otherwise. Throws
   * `kubernetes_failed` with the address and what the server said.
   */
  get(pathAndQuery: string, signal: AbortSignal, accept?: string): Promise<unknown>;
  /** An answer that goes on: `begun` is called when it begins, which must be in time; then a value per line. Throws as `get`. */
  lines(pathAndQuery: string, signal: AbortSignal, begun: () => void): AsyncGenerator<unknown, void>;
}

/** Each request has a connection of its own, so that one that is answered proves that the server is there. */
export function createApiClient(source: AccessSource, timeoutMs: number): ApiClient {
  return {
    async get(pathAndQuery, signal, accept) {
      const deadline = startDeadline(timeoutMs, `no whole answer in ${timeoutMs} ms`);
      try {
        const response = await open(source, pathAndQuery, AbortSignal.any([signal, deadline.signal]), accept);
        return JSON.parse(await wholeText(response)) as unknown;
      } catch (error) {
        throw failure(pathAndQuery, deadline.reasonOf(error));
      } finally {
        deadline.met();
      }
    },
    async *lines(pathAndQuery, signal, begun) {
      const deadline = startDeadline(timeoutMs, `no answer in ${timeoutMs} ms`);
      try {
        const response = await open(source, pathAndQuery, AbortSignal.any([signal, deadline.signal]));
        deadline.met();
        begun();
        yield* jsonLines(response);
      } catch (error) {
        throw failure(pathAndQuery, deadline.reasonOf(error));
      } finally {
        deadline.met();
      }
    },
  };
}

/** The body of an answer with status 200. */
async function open(
  source: AccessSource,
  pathAndQuery: string,
  signal: AbortSignal,
  accept = 'application/json',
): Promise<IncomingMessage> {
  const { server, ca, token, client, serverName } = await readAccess(source);
  const request = https.get(new URL(`${server.href.replace(/\/$/, '')}${pathAndQuery}`), {
    agent: false,
    signal,
    ...(ca === undefined ? {} : { ca }),
    ...client,
    ...(serverName === undefined ? {} : { servername: serverName }),
    headers: { accept, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
  });
  // Whoever gives up while the answer is read is told by the answer; without a listener this one would end the process.
  request.on('error', () => undefined);
  const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
  if (response.statusCode === 200) return response;
  const status = response.statusCode ?? 0;
  throw new ApiRefusal(status, `${status} ${messageOf(await wholeText(response)) ?? response.statusMessage ?? ''}`);
}

async function wholeText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`an answer of more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

async function* jsonLines(response: IncomingMessage): AsyncGenerator<unknown, void> {
  response.setEncoding('utf8');
  let rest = '';
  for await (const chunk of response as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxBytes) throw new Error(`a line of more than ${maxBytes} characters`);
    for (const line of lines) if (line !== '') yield JSON.parse(line) as unknown;
  }
}

const statusObject = z.object({ kind: z.literal('Status'), message: z.string() });

/** What the server says of a refusal, in words. */
function messageOf(body: string): string | undefined {
  try {
    return statusObject.safeParse(JSON.parse(body)).data?.message;
  } catch {
    return undefined;
  }
}

/** What went wrong at an address, as `kubernetes_failed` unless it is told already. */
export function failure(pathAndQuery: string, error: unknown): SidelightError {
  if (error instanceof SidelightError) return error;
  return new SidelightError('kubernetes_failed', { path: pathAndQuery.split('?', 1)[0], cause: error });
}

/** The version that was asked for is forgotten: all must be listed anew. */
export function isExpired(error: unknown): boolean {
  const cause = error instanceof SidelightError ? error.cause : undefined;
  return cause instanceof ApiRefusal && cause.status === 410;
}
