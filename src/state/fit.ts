/** Entries as JSON, and how many there was no room for. */
export interface Fitted {
  json: readonly string[];
  leftOut: number;
}

/**
 * As much of two lists as fits into `maxBytes`, from their beginnings. Neither takes more than half of it from the other;
 * what one does not need, the other may use.
 */
export function fitBoth(
  first: readonly unknown[],
  second: readonly unknown[],
  maxBytes: number,
): { first: Fitted; second: Fitted } {
  const half = Math.floor(maxBytes / 2);
  const secondAtMost = fit(second, half);
  const fittedFirst = fit(first, maxBytes - sizeOf(secondAtMost));
  return { first: fittedFirst, second: fit(second, maxBytes - sizeOf(fittedFirst)) };
}

function fit(entries: readonly unknown[], maxBytes: number): Fitted {
  const json: string[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const text = JSON.stringify(entry);
    bytes += sizeOfOne(text);
    if (bytes > maxBytes) break;
    json.push(text);
  }
  return { json, leftOut: entries.length - json.length };
}

function sizeOf({ json }: Fitted): number {
  return json.reduce((sum, text) => sum + sizeOfOne(text), 0);
}

/** With the comma before the next. */
function sizeOfOne(text: string): number {
  return Buffer.byteLength(text) + 1;
}
