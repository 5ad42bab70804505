import { type JsonObject, objectAt, objectsAt, textAt } from '../json.ts';
import type { Manifest } from '../read/yaml.ts';

/** What is looked at together: the objects of all files. */
export interface Mesh {
  manifests: readonly Manifest[];
  filters: readonly EnvoyFilter[];
  /** What is there holds for every namespace. */
  rootNamespace: string;
}

/** One entry of `configPatches`. */
export interface Patch {
  /** `document 1, EnvoyFilter app/x, patch 2 (HTTP_FILTER)` */
  where: string;
  applyTo: string;
  /** `ANY` where it says none. */
  context: string;
  /** `''`: any listener. */
  listener: string;
  match: JsonObject;
  operation: string;
  value: JsonObject;
}

/** An Istio EnvoyFilter; field names as protobuf spells them. */
export interface EnvoyFilter {
  where: string;
  namespace: string;
  annotations: JsonObject;
  targets: readonly { kind: string; name: string }[];
  /** The labels that it chooses its proxies by; empty: it does not. */
  selector: JsonObject;
  priority: number;
  patches: readonly Patch[];
}

/** The namespace that an object is in. */
export function namespaceOf(object: JsonObject): string {
  return textAt(object, 'metadata', 'namespace') || 'default';
}

/** The labels that an EnvoyFilter or a `Sidecar` chooses its proxies by; empty: it does not. */
export function selectorOf(object: JsonObject): JsonObject {
  return objectAt(object, 'spec', 'workload_selector', 'labels');
}

/** Reads the EnvoyFilters among the objects of a file. */
export function envoyFiltersOf(manifests: readonly Manifest[]): EnvoyFilter[] {
  return manifests.filter(({ kind }) => kind === 'EnvoyFilter').map(envoyFilterOf);
}

function envoyFilterOf({ where, value }: Manifest): EnvoyFilter {
  const spec = objectAt(value, 'spec');
  const target = objectAt(spec, 'target_ref');
  const targets = [...objectsAt(spec, 'target_refs'), ...(Object.keys(target).length === 0 ? [] : [target])];
  return {
    where,
    namespace: namespaceOf(value),
    annotations: objectAt(value, 'metadata', 'annotations'),
    targets: targets.map((one) => ({ kind: textAt(one, 'kind'), name: textAt(one, 'name') })),
    selector: selectorOf(value),
    priority: Number(spec['priority'] ?? 0),
    patches: objectsAt(spec, 'config_patches').map((patch, index) => patchOf(patch, `${where}, patch ${index + 1}`)),
  };
}

function patchOf(patch: JsonObject, where: string): Patch {
  const applyTo = textAt(patch, 'apply_to');
  const match = objectAt(patch, 'match');
  return {
    where: `${where} (${applyTo})`,
    applyTo,
    context: textAt(match, 'context') || 'ANY',
    listener: textAt(match, 'listener', 'name'),
    match,
    operation: textAt(patch, 'patch', 'operation'),
    value: objectAt(patch, 'patch', 'value'),
  };
}

export function hasSelector({ selector }: EnvoyFilter): boolean {
  return Object.keys(selector).length > 0;
}

/** What is patched inside a listener. */
const insideListeners = new Set(['LISTENER', 'FILTER_CHAIN', 'LISTENER_FILTER', 'NETWORK_FILTER', 'HTTP_FILTER']);

export function isInListener({ applyTo }: Patch): boolean {
  return insideListeners.has(applyTo);
}
