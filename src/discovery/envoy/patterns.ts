/** The longest pattern put into one address. Envoy takes headers of 60 KiB; what lies between may take less. */
const maxPatternLetters = 4000;

/** Texts into groups whose alternatives, as RE2, fit an address each. A text that is longer has a group of its own. */
export function patternsOf(texts: Iterable<string>): string[] {
  const patterns: string[] = [];
  let group: string[] = [];
  let letters = 0;
  for (const text of texts) {
    const escaped = escapeRe2(text);
    const size = encodeURIComponent(escaped).length + 1;
    if (group.length > 0 && letters + size > maxPatternLetters) {
      patterns.push(anyOf(group));
      group = [];
      letters = 0;
    }
    group.push(escaped);
    letters += size;
  }
  return group.length === 0 ? patterns : [...patterns, anyOf(group)];
}

/**
 * Anchored: `/clusters` and `/stats` look for the pattern anywhere in a name (Envoy 1.38 and 1.40), and an unescaped
 * `outbound|80||x` finds every cluster. test/e2e/envoy-admin.test.ts.
 */
function anyOf(escaped: readonly string[]): string {
  return `^(?:${escaped.join('|')})$`;
}

function escapeRe2(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}
