import http from 'node:http';
import https from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import { z } from 'zod';

/** Where one replica is: `address` is what its name resolved to; absent: the URL says it. */
export interface Address {
  url: URL;
  address: string | undefined;
}

export interface AskProblem {
  ok: false;
  reason: 'replica_unreachable' | 'answer_invalid';
  /** The URL, and what is wrong. */
  detail: string;
}

export type Asked<T> = { ok: true; value: T } | AskProblem;

export interface AskLimits {
  timeoutMs: number;
  maxBytes: number;
  /** Gives up at once. */
  signal: AbortSignal;
}

/** GETs JSON of a known shape. Never rejects: whatever comes, or does not come, is an answer. */
export async function ask<T>(
  { url: base, address }: Address,
  path: string,
  shape: z.ZodType<T>,
  limits: AskLimits,
): Promise<Asked<T>> {
  const url = new URL(path, base);
  const timeout = AbortSignal.timeout(limits.timeoutMs);
  const signal = AbortSignal.any([limits.signal, timeout]);
  const wrong = (what: string): AskProblem => ({ ok: false, reason: 'answer_invalid', detail: `${url.href}: ${what}` });
  let body: string;
  try {
    const answer = await get(url, { address, signal, maxBytes: limits.maxBytes });
    if (answer.status !== 200) return wrong(`HTTP ${answer.status}`);
    if (answer.body === undefined) return wrong(`more than ${limits.maxBytes} bytes`);
    ({ body } = answer);
  } catch (error) {
    const why = timeout.aborted ? `no answer within ${limits.timeoutMs} ms` : reasonOf(error);
    return { ok: false, reason: 'replica_unreachable', detail: `${url.href}: ${why}` };
  }
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return wrong('not JSON');
  }
  const checked = shape.safeParse(value);
  if (checked.success) return { ok: true, value: checked.data };
  const [first] = checked.error.issues;
  return wrong(first === undefined ? 'another shape' : `${z.core.toDotPath(first.path)}: ${first.message}`);
}

interface Got {
  status: number;
  /** Absent: it was too long, or of a status that nobody reads. */
  body: string | undefined;
}

function get(
  url: URL,
  { address, signal, maxBytes }: { address: string | undefined; signal: AbortSignal; maxBytes: number },
): Promise<Got> {
  const lookup = address === undefined ? {} : { lookup: always(address) };
  // A connection of its own each time: a Service address that leads to several replicas then shows.
  const options = { agent: false, signal, headers: { accept: 'application/json' }, ...lookup };
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).get(url, options, (response) => {
      const { statusCode: status = 0 } = response;
      const chunks: Buffer[] = [];
      let bytes = 0;
      const cut = () => {
        request.destroy();
        resolve({ status, body: undefined });
      };
      response.on('error', reject);
      if (status !== 200) return cut();
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxBytes) cut();
        else chunks.push(chunk);
      });
      response.on('end', () => resolve({ status, body: Buffer.concat(chunks).toString() }));
    });
    request.on('error', reject);
  });
}

function always(address: string): LookupFunction {
  const family = isIPv6(address) ? 6 : 4;
  return (_, { all }, done) => {
    if (all === true) done(null, [{ address, family }]);
    else done(null, address, family);
  };
}

/** The system's short word where there is one: what follows it repeats the address. */
export function reasonOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : error instanceof Error ? error.message : String(error);
}
