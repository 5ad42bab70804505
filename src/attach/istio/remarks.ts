import type { IstioPlan } from '../plan.ts';
import { frozenSeconds } from '../sidelight-cluster.ts';

const whatProfilesDo = {
  observe: 'observe: the access log alone, nothing in the path of a request',
  full: 'full: ext_proc tags each request, the access log tells the whole truth',
  tag: 'tag: ext_proc alone; it says retried, never masked, as it cannot see a failed attempt',
} as const;

/** What stands at the top of the EnvoyFilter. */
export function filterRemarks(plan: IstioPlan): string[] {
  return [
    `Sidelight on ${whom(plan)}.`,
    `Profile ${whatProfilesDo[plan.profile]}.`,
    ...frozen(plan),
    ...waypointRemarks(plan),
    ...ownPods(plan),
    'Taken off with `kubectl delete -f`. Nothing shows up? `sidelight doctor`.',
  ];
}

/** What stands at the top of the one for the mesh's own cluster. */
export function clusterRemarks({ proxies }: IstioPlan): string[] {
  return [
    `Bounds what a Sidelight that hangs can cost: out after ${frozenSeconds(proxies)} s. Apply it once to a proxy, whatever else is attached to it:`,
    'Envoy refuses a cluster with two health checks, and would go on without Sidelight.',
  ];
}

function whom({ target, scope, namespace, port, onlyService }: IstioPlan): string {
  const side = {
    'sidecar-outbound': 'the outbound side of the sidecars',
    'sidecar-inbound': 'the inbound side of the sidecars',
    waypoint: 'waypoints',
    gateway: 'gateways',
  }[target];
  const where = {
    mesh: 'of the whole mesh',
    namespace: `of namespace ${namespace}`,
    workload: `of namespace ${namespace} with these labels`,
    gateway: `of Gateway ${namespace}/${scope.kind === 'gateway' ? scope.name : ''}`,
  }[scope.kind];
  const only = onlyService
    ? `, for ${onlyService.host}:${onlyService.port} alone`
    : port === undefined
      ? ''
      : `, port ${port} alone`;
  return `${side} ${where}${only}`;
}

/** What a request can lose, where nothing bounds it. */
function frozen({ target, place, profile, messageTimeoutMs }: IstioPlan): string[] {
  if (target !== 'waypoint' || place.kind !== 'service' || profile === 'observe') return [];
  return [
    `A Sidelight that hangs costs each request ${messageTimeoutMs} ms for as long as it hangs: the mesh's cluster gets no health check, as`,
    'Istio ignores a patch of a cluster on a waypoint. With --address instead of --service it is out after some seconds.',
  ];
}

function waypointRemarks({ target }: IstioPlan): string[] {
  if (target !== 'waypoint') return [];
  return ['Istio does not support EnvoyFilter on waypoints: it works (1.31), and may end with any version.'];
}

/** A call for every call, where a filter lands in front of Sidelight itself. */
function ownPods({ target, scope }: IstioPlan): string[] {
  if (!target.startsWith('sidecar') || scope.kind === 'workload') return [];
  return [
    'Sidelight\'s own pods must have no sidecar: label them `sidecar.istio.io/inject: "false"`, as k8s/base does.',
  ];
}
