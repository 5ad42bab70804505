import { type AttachPlan, type IstioPlan, istioTargets } from '../../attach/plan.ts';
import { type AttachFlags, flagNames, type TargetFlag } from './flags.ts';
import { istioPlan } from './istio-plan.ts';
import { Problems } from './problems.ts';
import { parseWhat } from './what.ts';

/** What is to be written. */
export type AttachOptions =
  | { kind: 'istio'; plans: readonly IstioPlan[] }
  | { kind: 'envoy'; plan: AttachPlan; configFile: string; listeners: readonly string[] };

const targets = [...istioTargets, 'envoy'] as const;
const forIstio: readonly TargetFlag[] = [
  'namespace',
  'mesh',
  'selector',
  'gateway',
  'port',
  'only',
  'service',
  'istio',
];
const forEnvoy: readonly TargetFlag[] = ['config', 'listener'];

/** The options, or every mistake at once. */
export function parseAttach(
  flags: AttachFlags,
): { ok: true; options: AttachOptions } | { ok: false; problems: string[] } {
  const problems = new Problems();
  const to = [...new Set(flags.to)];
  for (const target of to)
    if (!targets.some((known) => known === target)) problems.found('--to', target, targets.join(', '));
  const isEnvoy = to.includes('envoy');
  if (isEnvoy && to.length > 1) problems.say('--to: envoy goes with no other target');
  for (const flag of isEnvoy ? forIstio : forEnvoy)
    if (flags[flag] !== undefined)
      problems.say(`${flagNames[flag]}: ${isEnvoy ? 'for Istio alone: not with --to envoy' : 'only with --to envoy'}`);
  const what = parseWhat(flags, !isEnvoy, problems);
  const options = isEnvoy ? envoyOptions(what, flags, problems) : istioOptions(what, to, flags, problems);
  return problems.lines.length === 0 && options !== undefined
    ? { ok: true, options }
    : { ok: false, problems: [...new Set(problems.lines)] };
}

function envoyOptions(plan: AttachPlan, flags: AttachFlags, problems: Problems): AttachOptions | undefined {
  if (flags.config === undefined)
    return problems.say('--to envoy: expected --config FILE: the Envoy config to attach to, - for standard input');
  return { kind: 'envoy', plan, configFile: flags.config, listeners: flags.listener ?? [] };
}

function istioOptions(what: AttachPlan, to: readonly string[], flags: AttachFlags, problems: Problems): AttachOptions {
  const chosen = istioTargets.filter((target) => to.includes(target));
  return { kind: 'istio', plans: chosen.map((target) => istioPlan(what, target, flags, problems)) };
}
