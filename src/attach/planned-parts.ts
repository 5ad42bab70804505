import type { Pair, YAMLMap } from 'yaml';
import { blockMap, flowMap, mapOf, seqOf } from './nodes.ts';
import { type LogParts, type Parts, shippedParts } from './parts.ts';
import type { AttachPlan } from './plan.ts';
import { plannedCluster, reached } from './sidelight-cluster.ts';
import { plannedTagger } from './tagger.ts';

/** Under this key Envoy's runtime says which share is logged, in percent: 0 is the kill switch. */
const logPercentKey = 'sidelight.log_percent';

/** The shipped parts as the plan wants them. */
export function plannedParts(plan: AttachPlan): Parts {
  const parts = shippedParts(plan.profile, reached(plan.place));
  if (parts.logs && plan.samplePercent !== undefined) addKillSwitch(parts.logs);
  return {
    ...parts,
    filters: parts.filters.map((filter) => (isTagger(filter) ? plannedTagger(filter, plan) : filter)),
    cluster: plannedCluster(parts.cluster, plan),
  };
}

function isTagger(filter: YAMLMap): boolean {
  return String(filter.getIn(['typed_config', '@type'])).endsWith('.ExternalProcessor');
}

/** Outside the block that the logs must have alike: a filter decides which entries are written at all. */
function addKillSwitch({ request, attempt, connection }: LogParts): void {
  for (const log of [request, attempt, connection])
    for (const logger of loggers(log)) logger.set('filter', allLogged());
}

function loggers({ value }: Pair): YAMLMap[] {
  return seqOf(value).items.map(mapOf);
}

function allLogged(): YAMLMap {
  const all = flowMap({ numerator: 100, denominator: 'HUNDRED' });
  return blockMap({ runtime_filter: flowMap({ runtime_key: logPercentKey, percent_sampled: all }) });
}
