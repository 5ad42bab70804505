import { type Document, isScalar, type LineCounter, visit } from 'yaml';

const spellings = new Map<unknown, string>([
  ['staticResources', 'static_resources'],
  ['filterChains', 'filter_chains'],
  ['defaultFilterChain', 'default_filter_chain'],
  ['typedConfig', 'typed_config'],
  ['httpFilters', 'http_filters'],
  ['accessLog', 'access_log'],
  ['upstreamLog', 'upstream_log'],
]);

/**
 * The first field that is spelled as JSON's own form of protobuf has it; empty: none. Envoy takes both, but not both at
 * once: ours would stand beside the user's.
 */
export function otherSpelling(document: Document, lines: LineCounter): string[] {
  const found: string[] = [];
  visit(document, {
    Pair: (_, { key }) => {
      const expected = isScalar(key) ? spellings.get(key.value) : undefined;
      if (!isScalar(key) || expected === undefined) return;
      const { line } = lines.linePos(key.range?.[0] ?? 0);
      found.push(`line ${line}: found ${String(key.value)}: expected ${expected}, and all fields spelled in this way`);
    },
  });
  return found.slice(0, 1);
}
