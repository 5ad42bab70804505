import { z } from 'zod';
import type { FieldFacts } from './fields.ts';
import { configSchema } from './schema.ts';

/** One field, as the docs and `--print-config` tell it. */
export interface FieldDescription {
  /** `join.lingerMs`, `clusters[].match`. */
  path: string;
  /** In words, with its range: `whole number, 1001 to 60000`. */
  type: string;
  /** `undefined`: absent unless given. */
  default: unknown;
  required: boolean;
  unit: string | undefined;
  meaning: string;
  secret: boolean;
}

/** A section or a field of the schema, as JSON Schema with our facts. */
export interface SchemaNode extends Partial<FieldFacts> {
  type?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  enum?: readonly unknown[];
  properties?: Readonly<Record<string, SchemaNode>>;
  required?: readonly string[];
  items?: SchemaNode;
  anyOf?: readonly SchemaNode[];
}

/** The root of the schema. */
export const schemaRoot = z.toJSONSchema(configSchema, { io: 'input' }) as SchemaNode;

/** Every field of the config, sections left out, in the order of the schema. */
export function describeSchema(): FieldDescription[] {
  return fieldsUnder(schemaRoot, '');
}

function fieldsUnder(node: SchemaNode, prefix: string): FieldDescription[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) => {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    if (child.properties) return fieldsUnder(child, path);
    if (child.items?.properties) {
      return [description(child, path, false), ...fieldsUnder(child.items, `${path}[]`)];
    }
    return [description(child, path, node.required?.includes(key) === true)];
  });
}

function description(node: SchemaNode, path: string, required: boolean): FieldDescription {
  return {
    path,
    type: typeInWords(node),
    default: node.default,
    required,
    unit: node.unit,
    meaning: node.meaning ?? '',
    secret: node.secret === true,
  };
}

/** What may stand at a node. */
export function typeInWords(node: SchemaNode): string {
  if (node.kind !== undefined) return node.kind;
  if (node.anyOf) return node.anyOf.map(typeInWords).join(', or ');
  if (node.enum) return `one of ${node.enum.join(', ')}`;
  if (node.type === 'integer') return `whole number, ${node.minimum} to ${node.maximum}`;
  if (node.type === 'number') return `number, ${node.minimum} to ${node.maximum}`;
  if (node.type === 'boolean') return 'true or false';
  if (node.type === 'array') return node.items?.properties ? 'list of mappings' : 'list';
  if (node.properties) return `mapping with ${Object.keys(node.properties).join(', ')}`;
  return node.minLength === undefined ? 'text' : `text of ${node.minLength} to ${node.maxLength} characters`;
}

/** The node at a path of a config; `undefined`: there is none. */
export function nodeAt(path: readonly PropertyKey[]): SchemaNode | undefined {
  let node: SchemaNode | undefined = schemaRoot;
  for (const key of path) {
    if (typeof key === 'number') node = node?.items;
    else node = new Map(Object.entries(node?.properties ?? {})).get(String(key));
  }
  return node;
}
