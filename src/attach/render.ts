import type { Document } from 'yaml';

const asWritten = {
  lineWidth: 0,
  flowCollectionPadding: true,
  doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY,
} as const;

/** Documents as one text of YAML; no line is folded. */
export function render(documents: readonly Document[]): string {
  return documents.map((document) => document.toString(asWritten)).join('---\n');
}
