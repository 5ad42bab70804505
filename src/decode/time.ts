import type { WireTime } from './wire-types.ts';

/** Milliseconds with a fraction of a protobuf Timestamp (then epoch ms) or Duration; absent stays absent. */
export function wireMs(time: WireTime | undefined): number | undefined {
  return time === undefined ? undefined : (time.seconds ?? 0) * 1000 + (time.nanos ?? 0) / 1e6;
}

const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/**
 * Epoch ms with a fraction of an RFC 3339 text, as Envoy writes the attribute `request.time`:
 * `2026-11-29T23:30:32.112862+00:00`. `undefined`: it is none.
 */
export function timestampTextMs(text: string): number | undefined {
  const parts = rfc3339.exec(text);
  if (parts === null) return undefined;
  const [, seconds = '', fraction = '', zone = ''] = parts;
  // oxlint-disable-next-line no-restricted-globals -- parsing a text reads no clock; it drops what is below 1 ms.
  const wholeMs = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(wholeMs) ? undefined : wholeMs + Number(`0.${fraction}`) * 1000;
}

/** Milliseconds of a decimal count of microseconds, as `%COMMON_DURATION(…:us)%` prints it. `undefined`: it is none. */
export function microsTextMs(text: string | undefined): number | undefined {
  const micros = countText(text);
  return micros === undefined ? undefined : micros / 1000;
}

/** A decimal count. `undefined`: none, a `-`, or too long to be exact. */
export function countText(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
