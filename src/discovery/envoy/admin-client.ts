import { SidelightError } from '../../lib/errors.ts';

/** One answer is read so far and no further. 5,000 hosts are about 6 MiB. */
const maxAnswerBytes = 8 * 1024 * 1024;

/** GETs from one Envoy's admin interface. */
export interface AdminClient {
  /** Throws `envoy_admin_failed`, with the address, when there is no whole answer in time, in size and in JSON. */
  json(pathAndQuery: string): Promise<AdminAnswer>;
  /** Gives up on what is asked now. */
  cancel(): void;
}

export interface AdminAnswer {
  value: unknown;
  sizeBytes: number;
}

/** `timeoutMs`: for a whole answer, its last byte included. */
export function createAdminClient({ url, timeoutMs }: { url: string; timeoutMs: number }): AdminClient {
  const asking = new Set<AbortController>();
  return {
    async json(pathAndQuery) {
      const ending = new AbortController();
      const timer = setTimeout(() => ending.abort(new Error(`no whole answer in ${timeoutMs} ms`)), timeoutMs);
      asking.add(ending);
      try {
        return await getJson(`${url.replace(/\/$/, '')}${pathAndQuery}`, ending.signal);
      } catch (error) {
        if (error instanceof SidelightError) throw error;
        const cause: unknown = ending.signal.aborted ? ending.signal.reason : reasonOf(error);
        throw failure(`${url}${pathAndQuery}`, { cause });
      } finally {
        clearTimeout(timer);
        asking.delete(ending);
      }
    },
    cancel() {
      for (const ending of asking) ending.abort(new Error('cancelled'));
    },
  };
}

async function getJson(address: string, signal: AbortSignal): Promise<AdminAnswer> {
  const response = await fetch(address, { signal, redirect: 'error', headers: { 'accept-encoding': 'identity' } });
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel();
    throw failure(address, { value: response.status, expected: 'status 200' });
  }
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  // Leaving the loop by a throw ends the connection: no further byte is read.
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > maxAnswerBytes) throw failure(address, { expected: `at most ${maxAnswerBytes} bytes` });
    chunks.push(chunk);
  }
  return { value: JSON.parse(Buffer.concat(chunks).toString()) as unknown, sizeBytes };
}

/** Names the interface and the path; a query holds a pattern that may be thousands of letters long. */
export function failure(
  address: string,
  details: { value?: unknown; expected?: string; cause?: unknown },
): SidelightError {
  return new SidelightError('envoy_admin_failed', { path: address.split('?', 1)[0], ...details });
}

/** `fetch failed` says nothing; what it failed of is its cause. */
function reasonOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error;
}
