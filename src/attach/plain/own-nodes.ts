import { type Document, isAlias, isMap, isNode, isSeq, type Node, visit, type YAMLMap } from 'yaml';

/**
 * Looks into a document whose nodes are to be changed. An alias on the way becomes a copy of what it names: a list of logs
 * may be that of the admin interface too, or of a TCP proxy, and must not change with ours.
 */
export interface OwnNodes {
  /** Undefined: no such key. */
  child: (map: YAMLMap, key: string) => unknown;
  /** The maps of a list, and where in the list they are; empty: no such list. */
  maps: (map: YAMLMap, key: string) => { map: YAMLMap; index: number }[];
}

/** Ask before the first change: a copy has what its original has by then. */
export function ownNodes(document: Document): OwnNodes {
  const own = (node: unknown): unknown => (isAlias(node) ? copyOf(node.resolve(document)) : node);
  const child: OwnNodes['child'] = (map, key) => {
    const pair = map.items.find((item) => String(item.key) === key);
    if (pair !== undefined) pair.value = own(pair.value);
    return pair?.value;
  };
  const maps: OwnNodes['maps'] = (map, key) => {
    const list = child(map, key);
    if (!isSeq(list)) return [];
    list.items = list.items.map(own);
    return list.items.flatMap((item, index) => (isMap(item) ? [{ map: item, index }] : []));
  };
  return { child, maps };
}

/** An anchor that were there twice would be another's from there on. */
function copyOf(original: Node | undefined): unknown {
  const copy: unknown = original?.clone();
  if (!isNode(copy)) return undefined;
  visit(copy, {
    Node: (_, node) => {
      if (!isAlias(node)) delete node.anchor;
    },
  });
  return copy;
}
