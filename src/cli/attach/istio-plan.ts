import {
  type AttachPlan,
  firstIstioKnown,
  firstIstioThatLogs,
  type IstioPlan,
  type IstioTarget,
  type Scope,
} from '../../attach/plan.ts';
import { parseHostPort } from '../../lib/host-port.ts';
import type { AttachFlags } from './flags.ts';
import type { Problems } from './problems.ts';
import { parseSelector } from './selector.ts';
import { logs } from './what.ts';

const namespaceShape = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const newestIstio = 31;

/** One EnvoyFilter's plan. Each mistake is told. */
export function istioPlan(what: AttachPlan, target: IstioTarget, flags: AttachFlags, problems: Problems): IstioPlan {
  const namespace = flags.mesh ? flags.rootNamespace : (flags.namespace ?? '');
  if (flags.mesh && flags.namespace !== undefined) problems.say('--mesh, --namespace: expected one of them');
  if (!flags.mesh && flags.namespace === undefined)
    problems.say('expected --namespace NAME, or --mesh for all of them');
  else if (!namespaceShape.test(namespace))
    problems.found(flags.mesh ? '--root-namespace' : '--namespace', namespace, 'the name of a namespace');
  const plan: IstioPlan = {
    ...what,
    target,
    namespace,
    scope: scopeOf(target, flags, problems),
    port: flags.port === undefined ? undefined : portOf(flags.port, problems),
    onlyService: flags.only === undefined ? undefined : onlyOf(flags.only, problems),
    tcp: flags.tcp,
    istioMinor: flags.istio === undefined ? undefined : minorOf(flags.istio, problems),
  };
  refuseWhatCannotLand(plan, problems);
  return plan;
}

function scopeOf(target: IstioTarget, flags: AttachFlags, problems: Problems): Scope {
  if (flags.selector !== undefined && flags.gateway !== undefined)
    problems.say('--selector, --gateway: expected one of them');
  if (flags.selector !== undefined) return { kind: 'workload', labels: parseSelector(flags.selector, problems) };
  if (flags.gateway !== undefined) {
    if (!namespaceShape.test(flags.gateway)) problems.found('--gateway', flags.gateway, 'the name of a Gateway');
    return { kind: 'gateway', name: flags.gateway };
  }
  if (flags.mesh) return { kind: 'mesh' };
  // The name that `istioctl waypoint apply` gives.
  return target === 'waypoint' ? { kind: 'gateway', name: 'waypoint' } : { kind: 'namespace' };
}

function portOf(text: string, problems: Problems): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : problems.found('--port', text, '1 to 65535');
}

function onlyOf(text: string, problems: Problems): IstioPlan['onlyService'] {
  const parsed = parseHostPort(text);
  if (parsed !== undefined && parsed.port > 0 && parsed.host.includes('.')) return parsed;
  return problems.found('--only', text, 'the full name of a Service and its port: cart.shop.svc.cluster.local:8080');
}

function minorOf(text: string, problems: Problems): number {
  const minor = Number(/^1\.(?<minor>\d{1,3})(?:\.\d{1,3})?$/.exec(text)?.groups?.['minor'] ?? 0);
  if (minor >= firstIstioKnown) return minor;
  problems.found('--istio', text, `1.${firstIstioKnown} or later, such as 1.${newestIstio}`);
  return newestIstio;
}

/** What Istio takes and lets land nowhere, or where it does harm. */
function refuseWhatCannotLand(plan: IstioPlan, problems: Problems): void {
  const { target, scope, profile, istioMinor, onlyService, port, place } = plan;
  const isSidecar = target === 'sidecar-inbound' || target === 'sidecar-outbound';
  if (logs(profile) && istioMinor !== undefined && istioMinor < firstIstioThatLogs)
    problems.say(
      `--profile ${profile}: Istio 1.${istioMinor} carries Envoy 1.36, which refuses a log with formatters in custom_tags: expected --profile tag, or Istio 1.${firstIstioThatLogs}`,
    );
  if (target === 'waypoint' && scope.kind === 'workload')
    problems.say('--selector: Istio ignores a selector on a waypoint: expected --gateway NAME');
  if (isSidecar && scope.kind === 'gateway') problems.say('--gateway: a sidecar has none: expected --selector LABELS');
  if (onlyService !== undefined && target !== 'waypoint') problems.say('--only: for a waypoint alone: expected --port');
  if (port !== undefined && target === 'waypoint') problems.say('--port: a waypoint has one listener: expected --only');
  if (target === 'sidecar-inbound' && scope.kind === 'mesh')
    problems.say(
      "--mesh: on the inbound side it would land in front of Sidelight itself, a call for every call: expected --namespace, for each namespace but Sidelight's",
    );
  if (isSidecar && scope.kind === 'namespace' && place.kind === 'service' && place.namespace === plan.namespace)
    problems.say(
      `--namespace ${plan.namespace}: Sidelight itself is there, and its own calls would be reported to it: expected --selector LABELS`,
    );
}
