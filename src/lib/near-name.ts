/** The known name that was probably meant, if one is near: at most a third of the letters differ. */
export function nearName(name: string, known: readonly string[]): string | undefined {
  const ranked = known.map((candidate) => ({ candidate, distance: editDistance(fold(name), fold(candidate)) }));
  const nearest = ranked.toSorted((a, b) => a.distance - b.distance)[0];
  if (nearest === undefined) return undefined;
  return nearest.distance <= Math.ceil(nearest.candidate.length / 3) ? nearest.candidate : undefined;
}

/** `linger_ms`, `linger-ms` and `LingerMs` are all near to `lingerMs`. Cut, so that a huge key costs nothing. */
function fold(name: string): string {
  return name.slice(0, 64).replaceAll(/[_-]/g, '').toLowerCase();
}

/** Levenshtein's distance, row by row. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
