import { isAttachedHttp } from '../chains.ts';
import { finding, type ProxyFinding } from '../finding.ts';
import { findTyped, type JsonObject, numberAt, objectAt, textAt } from '../json.ts';
import type { LogPart } from '../parts.ts';
import type { Proxy } from '../proxy.ts';

/** Runtime keys that `attach` writes as kill switches: whether one of them is thrown. */
export function checkSwitches({ attached, runtime }: Proxy): ProxyFinding[] {
  const switches = attached.flatMap((chain) => [
    ...chain.logs.map((log) => ({ where: chain.where, key: logSwitch(log)?.key ?? '' })),
    ...(isAttachedHttp(chain)
      ? chain.extProcs.map(({ filter }) => ({ where: chain.where, key: tagSwitch(filter) }))
      : []),
  ]);
  return switches.flatMap(({ where, key }) => {
    const value = key === '' ? undefined : runtime?.get(key);
    return value === '0' ? [finding('switched-off', { where, evidence: `runtime key ${key}: 0` })] : [];
  });
}

/** A log's filter that is a switch: all entries, or none by the runtime. `undefined`: it has none, or another one. */
export function logSwitch({ logger }: LogPart): { key: string; percent: number } | undefined {
  const filter = objectAt(logger, 'filter', 'runtime_filter');
  const key = textAt(filter, 'runtime_key');
  if (key === '') return undefined;
  return { key, percent: percentOf(objectAt(filter, 'percent_sampled')) };
}

const denominators: Record<string, number> = { HUNDRED: 1, TEN_THOUSAND: 100, MILLION: 10_000 };

function percentOf(fraction: JsonObject): number {
  return numberAt(fraction, 'numerator') / (denominators[textAt(fraction, 'denominator') || 'HUNDRED'] ?? 1);
}

function tagSwitch(filter: JsonObject): string {
  const [action] = findTyped(filter['typed_config'], 'ExecuteFilterAction');
  return textAt(action, 'sample_percent', 'runtime_key');
}
