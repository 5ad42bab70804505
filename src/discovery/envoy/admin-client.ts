import { SidelightError } from '../../lib/errors.ts';
import { fetchReason, getText } from '../../lib/http-text.ts';

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
        const cause: unknown = ending.signal.aborted ? ending.signal.reason : fetchReason(error);
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
  const answer = await getText(address, { signal, maxBytes: maxAnswerBytes });
  if (!answer.ok) throw failure(address, { value: answer.found, expected: answer.expected });
  return { value: JSON.parse(answer.text) as unknown, sizeBytes: answer.sizeBytes };
}

/** Names the interface and the path; a query holds a pattern that may be thousands of letters long. */
export function failure(
  address: string,
  details: { value?: unknown; expected?: string; cause?: unknown },
): SidelightError {
  return new SidelightError('envoy_admin_failed', { path: address.split('?', 1)[0], ...details });
}
