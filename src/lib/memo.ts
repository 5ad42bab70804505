/** Remembers what a pure function gave, of at most `max` texts at once: then it forgets all and begins anew. */
export function memo<T>(of: (text: string) => T, max: number): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= max) known.clear();
    const made = of(text);
    known.set(text, made);
    return made;
  };
}
