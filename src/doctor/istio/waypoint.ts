import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { textAt } from '../json.ts';
import type { Manifest } from '../read/yaml.ts';
import { type EnvoyFilter, hasSelector, isInListener, type Mesh, type Patch } from './envoy-filter.ts';
import { calledHosts, serviceOfHost } from './values.ts';

/*
 * What istiod does with an EnvoyFilter for a waypoint, without a word to the user. Each was seen on Istio 1.31's own
 * generator; test/istio/doctor.test.ts. Istio calls EnvoyFilter on waypoints unsupported.
 */

/** The listener of a waypoint that has the requests. */
const requestListener = 'main_internal';
const waypointClass = 'istio-waypoint';
const referenced = 'envoyfilter.istio.io/referenced-services';

/** What goes wrong with an EnvoyFilter that is meant for waypoints; nothing where it is not. */
export function checkWaypoint(filter: EnvoyFilter, mesh: Mesh): ProxyFinding[] {
  const { manifests, filters, rootNamespace } = mesh;
  return [
    ...targets(filter, rootNamespace),
    ...(isForWaypoint(filter, manifests)
      ? [
          ...selection(filter),
          ...filter.patches.flatMap((patch) => [
            ...listenerPatch(patch),
            ...clusterPatch(patch),
            ...routePatch(patch, manifests),
          ]),
          ...references(filter, filters),
        ]
      : []),
  ];
}

/** By the kind of its target; a Gateway is a waypoint by its class, where that is given, or by what is patched. */
function isForWaypoint({ targets: all, patches }: EnvoyFilter, manifests: readonly Manifest[]): boolean {
  if (patches.some(({ listener, context }) => listener === requestListener || context === 'WAYPOINT')) return true;
  if (all.some(({ kind, name }) => kind === 'GatewayClass' && name === waypointClass)) return true;
  const gateways = all.filter(({ kind }) => kind === 'Gateway');
  const classes = gateways.flatMap(({ name }) =>
    manifests
      .filter(({ kind, value }) => kind === 'Gateway' && textAt(value, 'metadata', 'name') === name)
      .map(({ value }) => textAt(value, 'spec', 'gateway_class_name')),
  );
  if (classes.length > 0) return classes.includes(waypointClass);
  return gateways.length > 0 && patches.some(({ context }) => context !== 'GATEWAY');
}

function targets({ targets: all, where, namespace }: EnvoyFilter, rootNamespace: string): ProxyFinding[] {
  const wrong = all.filter(({ kind }) => kind === 'Service' || kind === 'ServiceEntry');
  const classes = all.filter(({ kind }) => kind === 'GatewayClass');
  return [
    ...wrong.map(({ kind, name }) => finding('waypoint-target', { where, evidence: `targetRefs: ${kind} ${name}` })),
    ...findingIf(classes.length > 0 && namespace !== rootNamespace, 'waypoint-class-namespace', {
      where,
      evidence: `targetRefs: GatewayClass ${classes[0]?.name}, namespace: ${namespace}, root namespace: ${rootNamespace}`,
    }),
  ];
}

function selection(filter: EnvoyFilter): ProxyFinding[] {
  return findingIf(filter.targets.length === 0, 'waypoint-selector', {
    where: filter.where,
    evidence: hasSelector(filter) ? 'workloadSelector, and no targetRefs' : 'no targetRefs',
  });
}

function listenerPatch(patch: Patch): ProxyFinding[] {
  const { where, context, listener } = patch;
  if (!isInListener(patch)) return [];
  if (context !== 'SIDECAR_INBOUND' && context !== 'ANY') {
    return [finding('waypoint-context', { where, evidence: `context: ${context}` })];
  }
  return findingIf(listener !== requestListener, 'waypoint-listener', {
    where,
    evidence: listener === '' ? 'no listener name' : `listener: ${listener}`,
  });
}

function clusterPatch({ where, applyTo, context, operation }: Patch): ProxyFinding[] {
  if (applyTo !== 'CLUSTER') return [];
  const evidence = `operation: ${operation}, context: ${context}`;
  if (operation !== 'ADD') return [finding('waypoint-cluster-merge', { where, evidence })];
  return findingIf(context !== 'SIDECAR_INBOUND', 'waypoint-cluster-add', { where, evidence });
}

const routeKinds = new Set(['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE']);

function routePatch({ where, applyTo }: Patch, manifests: readonly Manifest[]): ProxyFinding[] {
  const routes = manifests.filter(({ kind }) => kind === 'VirtualService' || kind === 'HTTPRoute');
  const names = routes.map(({ kind, value }) => `${kind} ${textAt(value, 'metadata', 'name')}`);
  return findingIf(routeKinds.has(applyTo), 'waypoint-route-patch', {
    where,
    evidence: `applyTo: ${applyTo}; ${names.length === 0 ? 'whether its services have a VirtualService or HTTPRoute is not said here' : names.join(', ')}`,
  });
}

/** A waypoint has the clusters of the services that it serves, and of those that any EnvoyFilter for it names. */
function references({ where, namespace, patches }: EnvoyFilter, all: readonly EnvoyFilter[]): ProxyFinding[] {
  const beside = all
    .filter((one) => one.namespace === namespace)
    .map(({ annotations }) => textAt(annotations, referenced));
  const named = beside.flatMap((text) => text.split(/[\s,]+/)).filter((one) => one !== '');
  return calledHosts(patches.map(({ value }) => value))
    .filter((host) => !named.some((one) => one.endsWith(`/${host}`)))
    .map((host) =>
      finding('waypoint-not-referenced', {
        where,
        evidence: `${host} is not in ${referenced}${named.length === 0 ? ', which is absent' : `: ${named.join(', ')}`}`,
        remedy: `Add the annotation \`${referenced}: ${serviceOfHost(host)?.namespace ?? 'NAMESPACE'}/${host}\`.`,
      }),
    );
}
