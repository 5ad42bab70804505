import { isMap, isSeq, type Node, type Pair, YAMLMap, YAMLSeq } from 'yaml';

/** A map of a document whose shape is known; throws where it is not there. */
export function mapOf(node: unknown): YAMLMap {
  if (!isMap(node)) throw new Error('expected a YAML map');
  return node;
}

/** A list, likewise. */
export function seqOf(node: unknown): YAMLSeq {
  if (!isSeq(node)) throw new Error('expected a YAML list');
  return node;
}

/** A map of a map, likewise. */
export function childMap(map: YAMLMap, ...path: (string | number)[]): YAMLMap {
  return mapOf(map.getIn(path, true));
}

/** A list of a map, likewise. */
export function childSeq(map: YAMLMap, ...path: (string | number)[]): YAMLSeq {
  return seqOf(map.getIn(path, true));
}

/** A key with its value, and the comment before it; throws where it is not there. */
export function pairOf(map: YAMLMap, key: string): Pair {
  const pair = map.items.find((item) => String(item.key) === key);
  if (pair === undefined) throw new Error(`expected ${key} in a YAML map`);
  return pair;
}

/** A map in block style, of which what is absent is left out. Values may be nodes. */
export function blockMap(entries: Readonly<Record<string, unknown>>): YAMLMap {
  const map = new YAMLMap();
  for (const [key, value] of Object.entries(entries)) if (value !== undefined) map.set(key, value);
  return map;
}

/** A list in block style. */
export function blockSeq(items: readonly unknown[]): YAMLSeq {
  const seq = new YAMLSeq();
  for (const item of items) seq.add(item);
  return seq;
}

/** A map on one line. */
export function flowMap(entries: Readonly<Record<string, unknown>>): YAMLMap {
  const map = blockMap(entries);
  map.flow = true;
  return map;
}

/** Puts comment lines before a node; each line without its `#`. */
export function remark<T extends Node>(node: T, ...lines: readonly string[]): T {
  node.commentBefore = lines.map((line) => (line === '' ? '' : ` ${line}`)).join('\n');
  return node;
}
