import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { findTyped, textAt } from '../json.ts';
import { type EnvoyFilter, isInListener, type Patch } from './envoy-filter.ts';
import { callersIn, clusterNamesIn } from './values.ts';
import { rootNamespace } from './waypoint.ts';

/** What goes wrong with an EnvoyFilter wherever it lands. */
export function checkEverywhere(filter: EnvoyFilter): ProxyFinding[] {
  return filter.patches.flatMap((patch) => [...plainName(patch), ...inboundEverywhere(filter, patch)]);
}

function plainName({ where, value }: Patch): ProxyFinding[] {
  const name = textAt(value, 'name');
  const isExtProc = findTyped(value, 'ExternalProcessor').length > 0;
  return findingIf(isExtProc && name === 'envoy.filters.http.ext_proc', 'default-filter-name', {
    where,
    evidence: `name: ${name}`,
  });
}

/** A filter on the inbound side of every pod is also on that of the service's own. */
function inboundEverywhere({ targets, hasSelector, namespace }: EnvoyFilter, patch: Patch): ProxyFinding[] {
  const { where, context, value } = patch;
  const isInbound = context === 'SIDECAR_INBOUND' || context === 'ANY';
  if (targets.length > 0 || hasSelector || !isInbound || !isInListener(patch) || callersIn(value).length === 0)
    return [];
  const ours = clusterNamesIn(value).flatMap((name) => /^outbound\|\d+\|[^|]*\|[^.]+\.([^.]+)\./.exec(name)?.[1] ?? []);
  const isEverywhere = namespace === rootNamespace;
  return isEverywhere || ours.includes(namespace)
    ? [
        finding('mesh-wide-inbound', {
          where,
          evidence: `context: ${context}, no workloadSelector, namespace ${namespace}: ${isEverywhere ? 'every pod of the mesh' : 'the pods of the service itself'}`,
        }),
      ]
    : [];
}
