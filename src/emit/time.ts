import type { HrTime } from '@opentelemetry/api';

/**
 * Epoch ms with a fraction → OpenTelemetry's time, exact to the microsecond: a double of today's epoch ms holds no more.
 */
export function toHrTime(epochMs: number): HrTime {
  const micros = Math.round(epochMs * 1000);
  const seconds = Math.floor(micros / 1_000_000);
  return [seconds, (micros - seconds * 1_000_000) * 1000];
}
