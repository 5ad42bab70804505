import type { Document } from 'yaml';

/** Documents as one text of YAML; no line is folded. */
export function render(documents: readonly Document[]): string {
  return documents.map((document) => document.toString({ lineWidth: 0, flowCollectionPadding: true })).join('---\n');
}
