const unitsMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** `500ms`, `60s`, `15m`, `1h` → milliseconds. `undefined`: it is no such thing. */
export function parseDuration(text: string): number | undefined {
  const groups = /^(?<number>\d{1,9})(?<unit>ms|s|m|h)$/.exec(text)?.groups;
  if (groups === undefined) return undefined;
  return Number(groups['number']) * unitsMs[groups['unit'] as keyof typeof unitsMs];
}

/** `0.4s`, `12s`, `3m 20s`, `1h 5m`, `2d 3h`: the two largest units, for people. */
export function durationText(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return 'ever';
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return pair(whole, 60, 'm', 's');
  if (whole < 86_400) return pair(Math.floor(whole / 60), 60, 'h', 'm');
  return pair(Math.floor(whole / 3600), 24, 'd', 'h');
}

function pair(amount: number, size: number, large: string, small: string): string {
  const rest = amount % size;
  return `${Math.floor(amount / size)}${large}${rest === 0 ? '' : ` ${rest}${small}`}`;
}
