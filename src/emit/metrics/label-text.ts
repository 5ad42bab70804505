/** Labels as the text format has them, without braces: `a="b",c="d"`. Names get `_` for what Prometheus does not take. */
export function labelText(labels: Readonly<Record<string, unknown>>): string {
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(labels)) {
    const label = labelName(name);
    // Two names may become one label. A scrape in which a label is there twice is refused as a whole.
    if (!texts.has(label)) texts.set(label, `${label}="${escaped(String(value))}"`);
  }
  return [...texts.values()].join(',');
}

function labelName(name: string): string {
  const label = name.replaceAll(/[^a-zA-Z0-9_]/g, '_').replaceAll(/_{2,}/g, '_');
  return /^\d/.test(label) ? `key_${label}` : label;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
