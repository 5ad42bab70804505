import { Document, type YAMLMap } from 'yaml';
import { blockMap, blockSeq, flowMap } from '../nodes.ts';
import { type IstioPlan } from '../plan.ts';
import { plannedParts } from '../planned-parts.ts';
import { boundsOf, reached, serviceHost } from '../sidelight-cluster.ts';
import { addCluster, mergeIntoCluster, patches } from './patches.ts';
import { clusterRemarks, filterRemarks } from './remarks.ts';
import { addSpanId } from './span-id.ts';

/** Later than those without a priority, so that ours is right before the router. */
const priority = 10;

/** The EnvoyFilters of some plans, each once. */
export function envoyFilters(plans: readonly IstioPlan[]): Document[] {
  const byName = new Map(plans.flatMap(filtersOf).map((document) => [document.getIn(['metadata', 'name']), document]));
  return [...byName.values()];
}

/**
 * Two only where a cluster of the mesh's own gets more: that one is to be applied once to a proxy, whatever else is
 * attached to it, as Envoy refuses a cluster with two health checks.
 */
function filtersOf(plan: IstioPlan): Document[] {
  const parts = plannedParts(plan);
  const { place, target } = plan;
  if (parts.logs) addSpanId(parts.logs, plan);
  const main = patches(parts, plan);
  if (place.kind !== 'service') main.push(addCluster(parts.cluster, plan));
  const name = `sidelight-${target}`;
  const documents = [envoyFilter(plan, name, main, filterRemarks(plan))];
  // On a waypoint such a patch is ignored without a word.
  if (place.kind === 'service' && target !== 'waypoint') {
    const merged = mergeIntoCluster(boundsOf(parts.cluster), plan, reached(place).cluster);
    // Both sides of a sidecar have one list of clusters.
    const ofGateways = target === 'gateway' ? 'sidelight-gateway-cluster' : 'sidelight-cluster';
    documents.push(envoyFilter(plan, ofGateways, [merged], clusterRemarks(plan)));
  }
  return documents;
}

function envoyFilter(plan: IstioPlan, name: string, configPatches: YAMLMap[], remarks: string[]): Document {
  for (const patch of configPatches.slice(1)) patch.spaceBefore = true;
  const document = new Document(
    blockMap({
      apiVersion: 'networking.istio.io/v1alpha3',
      kind: 'EnvoyFilter',
      metadata: blockMap({ name, namespace: plan.namespace, annotations: annotations(plan) }),
      spec: blockMap({ ...selection(plan), priority, configPatches: blockSeq(configPatches) }),
    }),
  );
  document.commentBefore = remarks.map((line) => (line === '' ? '' : ` ${line}`)).join('\n');
  return document;
}

/** A waypoint has the clusters of what it serves, and of what this names. */
function annotations({ target, place }: IstioPlan): YAMLMap | undefined {
  if (target !== 'waypoint' || place.kind !== 'service') return undefined;
  return blockMap({ 'envoyfilter.istio.io/referenced-services': `${place.namespace}/${serviceHost(place)}` });
}

function selection({ target, scope }: IstioPlan): Record<string, unknown> {
  switch (scope.kind) {
    case 'workload':
      return { workloadSelector: blockMap({ labels: blockMap(scope.labels) }) };
    case 'gateway':
      return { targetRefs: blockSeq([targetRef('Gateway', scope.name)]) };
    case 'mesh':
      return target === 'waypoint' ? { targetRefs: blockSeq([targetRef('GatewayClass', 'istio-waypoint')]) } : {};
    case 'namespace':
      return {};
    default:
      return scope satisfies never;
  }
}

function targetRef(kind: string, name: string): YAMLMap {
  return flowMap({ group: 'gateway.networking.k8s.io', kind, name });
}
