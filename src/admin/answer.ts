import type { ServerResponse } from 'node:http';

/** One answer. `GET` sends the body, `HEAD` only its length. */
export interface Answer {
  status: number;
  contentType: string;
  /** Whole, or in pieces that are made as the client reads. */
  body: string | Iterable<string>;
  headers?: Readonly<Record<string, string>>;
}

/** An answer without an end: events, until either side closes. `HEAD` is told the headers of none. */
export interface EventStream {
  open: (response: ServerResponse) => void;
}

/** Answers are data for tools on this machine: no page may frame, guess, cache or embed them. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** `value` must be plain JSON. */
export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(value)}\n`, headers };
}

/** Every error of this port: `{"error": code, "message": words}`. */
export function problem(
  status: number,
  error: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return json(status, { error, message }, headers);
}
