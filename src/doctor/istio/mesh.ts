import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { findTyped, textAt } from '../json.ts';
import { type EnvoyFilter, hasSelector, isInListener, type Mesh, type Patch } from './envoy-filter.ts';
import { calledHosts, callersIn, serviceOfHost } from './values.ts';

/** What goes wrong with an EnvoyFilter wherever it lands. */
export function checkEverywhere(filter: EnvoyFilter, { rootNamespace }: Mesh): ProxyFinding[] {
  return filter.patches.flatMap((patch) => [
    ...plainName(patch),
    ...afterRouter(patch),
    ...inboundEverywhere(filter, patch, rootNamespace),
  ]);
}

function plainName({ where, value }: Patch): ProxyFinding[] {
  const name = textAt(value, 'name');
  const isExtProc = findTyped(value, 'ExternalProcessor').length > 0;
  return findingIf(isExtProc && name === 'envoy.filters.http.ext_proc', 'default-filter-name', {
    where,
    evidence: `name: ${name}`,
  });
}

/** The router must be the last filter: Envoy refuses a listener in which it is not. */
function afterRouter({ where, applyTo, operation, match }: Patch): ProxyFinding[] {
  const subFilter = textAt(match, 'listener', 'filter_chain', 'filter', 'sub_filter', 'name');
  const isAfter = operation === 'ADD' || (operation === 'INSERT_AFTER' && subFilter.endsWith('.router'));
  return findingIf(applyTo === 'HTTP_FILTER' && isAfter, 'filter-order', {
    where,
    evidence: `operation: ${operation}: after the router`,
    remedy:
      'Use `operation: INSERT_BEFORE` with `subFilter: {name: envoy.filters.http.router}`: Envoy refuses a filter after the router.',
  });
}

/** A filter on the inbound side of every pod is also on that of the service's own. */
function inboundEverywhere(filter: EnvoyFilter, patch: Patch, rootNamespace: string): ProxyFinding[] {
  const { targets, namespace } = filter;
  const { where, context, value } = patch;
  const isInbound = context === 'SIDECAR_INBOUND' || context === 'ANY';
  if (targets.length > 0 || hasSelector(filter) || !isInbound || !isInListener(patch) || callersIn(value).length === 0)
    return [];
  const ours = calledHosts(value).map((host) => serviceOfHost(host)?.namespace);
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
