/** A body, or what was wrong with the answer. */
export type HttpText =
  | { ok: true; text: string; sizeBytes: number }
  /** `found`: the status; absent: the body is too long. */
  | { ok: false; found: number | undefined; expected: string };

/**
 * GETs a text of at most so many bytes; what is longer is not read to its end. Rejects as `fetch` does: when there is no
 * whole answer before `signal` says to give up.
 */
export async function getText(
  address: string,
  { signal, maxBytes }: { signal: AbortSignal; maxBytes: number },
): Promise<HttpText> {
  const response = await fetch(address, { signal, redirect: 'error', headers: { 'accept-encoding': 'identity' } });
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel();
    return { ok: false, found: response.status, expected: 'status 200' };
  }
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  // Leaving the loop ends the connection: no further byte is read.
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > maxBytes) return { ok: false, found: undefined, expected: `at most ${maxBytes} bytes` };
    chunks.push(chunk);
  }
  return { ok: true, text: Buffer.concat(chunks).toString(), sizeBytes };
}

/** `fetch failed` says nothing; what it failed of is its cause. */
export function fetchReason(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error;
}
