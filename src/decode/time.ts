import type { WireTime } from './wire-types.ts';

/** Milliseconds with a fraction of a protobuf Timestamp, epoch ms; absent stays absent. */
export function wireMs(time: WireTime | undefined): number | undefined {
  return time === undefined ? undefined : (time.seconds ?? 0) * 1000 + (time.nanos ?? 0) / 1e6;
}

/** No request lasts a hundred days: a longer or a negative duration is nonsense, and would spoil every sum for good. */
const longestMs = 100 * 86_400_000;

/** Milliseconds with a fraction of a protobuf Duration; absent, and impossible, are `undefined`. */
export function wireDurationMs(duration: WireTime | undefined): number | undefined {
  return plausibleMs(wireMs(duration));
}

/** The same of a duration that came as a number. */
export function plausibleMs(ms: number | undefined): number | undefined {
  return ms !== undefined && ms >= 0 && ms <= longestMs ? ms : undefined;
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
