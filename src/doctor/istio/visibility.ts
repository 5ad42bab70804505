import { finding, type ProxyFinding } from '../finding.ts';
import { type JsonObject, listAt, objectsAt, textAt } from '../json.ts';
import type { Manifest } from '../read/yaml.ts';
import { type EnvoyFilter, type Mesh, namespaceOf, selectorOf } from './envoy-filter.ts';
import { calledHosts, serviceOfHost } from './values.ts';

/*
 * Which services Istio gives to a sidecar: those of its `Sidecar` resource, and of them those that are exported to it.
 * Compared with Istio 1.31's own generator; test/istio/doctor.test.ts.
 */

/** Says where the sidecars that a filter is for do not know a service that it sends to. */
export function checkVisibility(filter: EnvoyFilter, mesh: Mesh): ProxyFinding[] {
  const { where, namespace, targets, patches } = filter;
  // A Sidecar resource holds for no gateway and no waypoint.
  if (targets.length > 0) return [];
  const values = patches.filter(({ context }) => context !== 'GATEWAY').map(({ value }) => value);
  const sidecars = sidecarsOf(filter, mesh);
  // The mesh's default is each namespace's own.
  const ownOf = ({ value }: Manifest) => (namespaceOf(value) === mesh.rootNamespace ? namespace : namespaceOf(value));
  return calledHosts(values).flatMap((host) => {
    const service = serviceOf(host, mesh.manifests);
    const reasons = [unexported(service, namespace), ...sidecars.map((one) => leftOut(one, service, ownOf(one)))];
    return reasons
      .filter((reason) => reason !== undefined)
      .map((reason) => finding('service-hidden', { where, evidence: `${host} is ${reason}` }));
  });
}

interface Service {
  host: string;
  /** Absent: its name does not say, and no object that was given. */
  namespace: string | undefined;
  object: Manifest | undefined;
}

function serviceOf(host: string, manifests: readonly Manifest[]): Service {
  const named = serviceOfHost(host);
  const object = manifests.find(({ kind, value }) =>
    kind === 'ServiceEntry'
      ? listAt(value, 'spec', 'hosts').includes(host)
      : kind === 'Service' &&
        textAt(value, 'metadata', 'name') === named?.name &&
        namespaceOf(value) === named.namespace,
  );
  return { host, namespace: named?.namespace ?? (object && namespaceOf(object.value)), object };
}

/** What a Service or ServiceEntry says of who may see it, where that leaves a namespace out. */
function unexported({ namespace, object }: Service, toNamespace: string): string | undefined {
  if (object === undefined) return undefined;
  const { kind, where, value } = object;
  const listed = kind === 'Service' ? exportAnnotation(value) : listAt(value, 'spec', 'export_to').map(String);
  const isExported = listed.some((to) => to === '*' || (to === '.' ? namespace : to) === toNamespace);
  return listed.length === 0 || isExported
    ? undefined
    : `not exported to ${toNamespace} by ${where}, exportTo: ${listed.join(', ')}`;
}

function exportAnnotation(value: JsonObject): string[] {
  const text = textAt(value, 'metadata', 'annotations', 'networking.istio.io/exportTo');
  return text.split(',').flatMap((to) => to.trim() || []);
}

/** The `Sidecar`s that hold for sidecars of a filter: for all of them, or for some. */
function sidecarsOf({ namespace, selector }: EnvoyFilter, { manifests, rootNamespace }: Mesh): Manifest[] {
  const all = manifests.filter(({ kind }) => kind === 'Sidecar');
  const inReach = all.filter(({ value }) => namespace === rootNamespace || namespaceOf(value) === namespace);
  const fitting = inReach.filter(
    ({ value }) => isWithin(selectorOf(value), selector) || isWithin(selector, selectorOf(value)),
  );
  // One for these workloads comes before the namespace's, which comes before the mesh's.
  const own = fitting.filter(({ value }) => !isEmpty(selectorOf(value)) && isWithin(selectorOf(value), selector));
  if (own.length > 0) return own;
  if (fitting.some(({ value }) => isEmpty(selectorOf(value)))) return fitting;
  const ofMesh = all.filter(({ value }) => namespaceOf(value) === rootNamespace && isEmpty(selectorOf(value)));
  return [...fitting, ...ofMesh];
}

function isEmpty(labels: JsonObject): boolean {
  return Object.keys(labels).length === 0;
}

/** Whether what has all of the second labels has all of the first. */
function isWithin(labels: JsonObject, others: JsonObject): boolean {
  return Object.entries(labels).every(([name, label]) => others[name] === label);
}

/** The egress hosts of a `Sidecar`, where a service is not among them; `own` is what `.` means there. */
function leftOut({ where, value }: Manifest, { host, namespace }: Service, own: string): string | undefined {
  const listed = objectsAt(value, 'spec', 'egress').flatMap((listener) => listAt(listener, 'hosts').map(String));
  const isListed = listed.some((entry) => {
    const [inNamespace = '', name = ''] = entry.split('/', 2);
    const fits = name === '*' || name === host || (name.startsWith('*.') && host.endsWith(name.slice(1)));
    const wanted = inNamespace === '.' ? own : inNamespace;
    return fits && (wanted === '*' || (wanted !== '~' && (namespace === undefined || wanted === namespace)));
  });
  return listed.length === 0 || isListed ? undefined : `not let in by ${where}, egress hosts: ${listed.join(', ')}`;
}
