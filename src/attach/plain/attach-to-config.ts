import {
  Alias,
  type Document,
  isMap,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { blockSeq, flowMap, mapOf, remark, seqOf } from '../nodes.ts';
import type { LogParts, Parts } from '../parts.ts';
import type { AttachPlan } from '../plan.ts';
import { plannedParts } from '../planned-parts.ts';
import { ownClusterName } from '../sidelight-cluster.ts';
import { type ConfigFilter, findFilters } from './find-filters.ts';
import { otherSpelling } from './other-spelling.ts';

export type Attached = { ok: true; document: Document } | { ok: false; problems: string[] };

/** One mistake of YAML brings others with it. */
const mostErrors = 5;

/**
 * An Envoy config of the user's (YAML or JSON) with our parts in every HTTP connection manager and TCP proxy of its
 * listeners, or of those that are named. What else is in it stays as it is, comments too. Problems: what is wrong, where.
 */
export function attachToConfig(text: string, plan: AttachPlan, listeners: readonly string[]): Attached {
  const lines = new LineCounter();
  // Envoy has numbers of 64 bits.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, intAsBigInt: true });
  const problems = document.errors
    .slice(0, mostErrors)
    .map(({ message, pos }) => `line ${lines.linePos(pos[0]).line}: YAML: ${message}`);
  if (problems.length > 0) return { ok: false, problems };
  problems.push(...otherSpelling(document, lines));
  if (problems.length > 0) return { ok: false, problems };
  problems.push(...alreadyThere(document));
  const found = findFilters(document, listeners);
  problems.push(...found.problems);
  if (problems.length > 0) return { ok: false, problems };
  toBlockStyle(document);
  for (const filter of found.filters) attachTo(filter, plannedParts(plan));
  addCluster(document, plannedParts(plan));
  if (plan.samplePercent !== undefined) allowRuntimeChanges(document);
  oneLogBlock(document, plan);
  return { ok: true, document };
}

/** A second time would log everything twice. */
function alreadyThere(document: Document): string[] {
  let isThere = false;
  visit(document, {
    Pair: (_, { key, value }) => {
      isThere ||= String(key) === 'log_name' && String(value).startsWith('sidelight.');
      isThere ||= String(key) === 'key' && String(value) === 'x-sidelight-profile';
    },
  });
  if (isThere) return ['Sidelight is attached to this config already: give the one that it was made from'];
  const clusters = document.getIn(['static_resources', 'clusters'], true);
  const taken = isSeq(clusters) && clusters.items.some((item) => isMap(item) && item.get('name') === ownClusterName);
  return taken ? [`a cluster named ${ownClusterName} is there, and is not ours: it needs another name`] : [];
}

/** JSON is YAML on one line: no place for a remark. */
function toBlockStyle({ contents }: Document): void {
  if (!isMap(contents) || contents.flow !== true) return;
  visit(contents, {
    Collection: (_, node) => {
      node.flow = false;
    },
  });
}

function attachTo(
  { kind, config, router, routerIndex }: ConfigFilter,
  { earlyHeaderMutation, filters, logs }: Parts,
): void {
  if (kind === 'tcp') {
    if (logs) logConnections(config, logs);
    return;
  }
  append(config, earlyHeaderMutation);
  if (logs) {
    append(config, logs.request);
    addMissing(router, logs.attemptOptions);
    append(router, logs.attempt);
  }
  const chain = config.get('http_filters') as YAMLSeq;
  chain.items.splice(routerIndex, 0, ...filters);
}

function logConnections(proxy: YAMLMap, { connection, connectionOptions }: LogParts): void {
  addMissing(proxy, connectionOptions);
  append(proxy, connection);
}

/** To a list of the user's, or as a list of its own. */
function append(map: YAMLMap, pair: Pair): void {
  map.flow = false;
  const before = map.get(String(pair.key), true);
  const added = (pair.value as YAMLSeq).items;
  if (!isSeq(before)) return replace(map, pair);
  before.flow = false;
  before.items.push(...added);
}

/** What the user has set stays. */
function addMissing(map: YAMLMap, pair: Pair): void {
  map.flow = false;
  const before = map.get(String(pair.key), true);
  if (!isMap(before)) return replace(map, pair);
  for (const option of (pair.value as YAMLMap).items) if (!before.has(String(option.key))) before.items.push(option);
}

/** A key without a value is there, and holds nothing. */
function replace(map: YAMLMap, pair: Pair): void {
  map.delete(String(pair.key));
  map.items.push(pair);
}

function addCluster(document: Document, { cluster }: Parts): void {
  const clusters = document.getIn(['static_resources', 'clusters'], true);
  if (isSeq(clusters)) clusters.items.push(cluster);
  else document.setIn(['static_resources', 'clusters'], blockSeq([cluster]));
}

/** Envoy takes changes from its admin interface only where a layer says so: "No admin layer specified" (1.40). */
function allowRuntimeChanges(document: Document): void {
  const path = ['layered_runtime', 'layers'];
  const layers = document.getIn(path, true);
  const unheard = document.hasIn(['admin', 'address'])
    ? ''
    : ', once there is an `admin` interface: this config has none';
  const words = `Lets \`runtime_modify\` be heard${unheard}.`;
  const ours = remark(flowMap({ name: 'admin', admin_layer: flowMap({}) }), words);
  if (!isMap(document.get('layered_runtime'))) document.delete('layered_runtime');
  if (!isSeq(layers)) document.setIn(path, blockSeq([ours]));
  else if (!layers.items.some((layer) => isMap(layer) && layer.has('admin_layer'))) layers.items.push(ours);
}

/** The block that all logs must have alike stands where the first of them is; the others name it. */
function oneLogBlock(document: Document, plan: AttachPlan): void {
  const logs = plannedParts(plan).logs;
  if (logs === undefined) return;
  const block = mapOf(seqOf(logs.request.value).getIn([0, 'typed_config', 'common_config'], true));
  const anchor = block.anchor ?? '';
  let isDefined = false;
  visit(document, {
    Pair: (_, pair) => {
      if (String(pair.key) !== 'common_config') return;
      const isOurs =
        pair.value instanceof Alias ? pair.value.source === anchor : isMap(pair.value) && pair.value.anchor === anchor;
      if (!isOurs) return;
      pair.value = isDefined ? new Alias(anchor) : block;
      isDefined = true;
    },
  });
}
