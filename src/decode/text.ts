import { Buffer } from 'node:buffer';
import { memo } from '../lib/memo.ts';

/** Cuts a text to at most `maxBytes` of UTF-8, never inside a character. */
export function cutText(text: string, maxBytes: number): string {
  // A UTF-16 unit is at most three bytes of UTF-8: the common short text is not measured.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.toString('utf8', 0, end);
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** The same, where proto3 writes an absent text as an empty one: `undefined` for both. */
export function labelText(text: string | undefined, maxBytes: number): string | undefined {
  return text === undefined || text === '' ? undefined : cutText(text, maxBytes);
}

/** No id is longer: a key has about 40, a traceparent 55, a debug secret 256 characters. */
const longestId = 512;

/** A text that is compared or joined by: never cut, since cutting makes two alike. Empty or too long: `undefined`. */
export function idText(text: string | undefined): string | undefined {
  return text === undefined || text === '' || text.length > longestId ? undefined : text;
}

/** Clusters, and endpoints, of which the texts are remembered. */
export const maxRemembered = 16_384;

const rememberedCluster = memo((cluster) => cluster, maxRemembered);

/**
 * The same text, one string for each. Every table is asked by a cluster and an endpoint for each entry: a string that
 * it knows already is found by its address, another one by a hash and a comparison of all its characters, which with
 * thousands of them are in no cache of the CPU (test/bench/endpoints.ts).
 */
export function sameCluster(cluster: string | undefined): string | undefined {
  return cluster === undefined ? undefined : rememberedCluster(cluster);
}
