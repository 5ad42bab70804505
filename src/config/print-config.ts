import { stringify } from 'yaml';
import { type SchemaNode, schemaRoot, typeInWords } from './describe.ts';
import type { Config } from './schema.ts';

/**
 * A config as YAML, each field with its meaning, unit, type and default in a comment. What is absent is a comment
 * too. `checkConfig` reads it back to the same config, but for secrets, which are never printed.
 */
export function printConfig(config: Config): string {
  const parts = Object.entries(schemaRoot.properties ?? {}).map(([key, node]) =>
    fieldLines(key, node, config[key as keyof Config]).join('\n'),
  );
  return `${parts.join('\n\n')}\n`;
}

function sectionLines(node: SchemaNode, values: Record<string, unknown>): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) => fieldLines(key, child, values[key]));
}

function fieldLines(key: string, node: SchemaNode, value: unknown): string[] {
  if (node.properties && value !== undefined) {
    const inner = sectionLines(node, value as Record<string, unknown>).map((line) => `  ${line}`);
    return [`# ${node.meaning}`, `${key}:`, ...inner];
  }
  return [`# ${node.meaning}`, `# ${factsOf(node)}`, ...valueLines(key, node, value)];
}

function factsOf(node: SchemaNode): string {
  const unit = node.unit === undefined ? '' : ` (${node.unit})`;
  const fallback = node.default === undefined ? 'absent' : JSON.stringify(node.default);
  return `${typeInWords(node)}${unit}; default ${fallback}`;
}

function valueLines(key: string, node: SchemaNode, value: unknown): string[] {
  if (value === undefined) return [`# ${key}:`];
  if (node.secret) return [`# ${key}: (set, not shown)`];
  return stringify({ [key]: value }, { lineWidth: 0 })
    .trimEnd()
    .split('\n');
}
