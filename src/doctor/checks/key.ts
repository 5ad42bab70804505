import { type HttpChain, isAttachedHttp } from '../chains.ts';
import { finding, type ProxyFinding } from '../finding.ts';
import { textAt } from '../json.ts';
import { keyHeader } from '../parts.ts';
import type { Proxy } from '../proxy.ts';

/** The key that joins what belongs to one request: set early, over what the hop before sent. */
export function checkKey({ attached }: Proxy): ProxyFinding[] {
  return attached.filter(isAttachedHttp).flatMap(checkChain);
}

const overwrites = new Set(['OVERWRITE_IF_EXISTS_OR_ADD']);

function checkChain({ where, early, late, filters }: HttpChain): ProxyFinding[] {
  const isKey = ({ header }: { header: string }) => header === keyHeader;
  const set = early.find(isKey);
  if (set !== undefined) {
    if (overwrites.has(set.action)) return [];
    return [finding('key-not-overwritten', { where, evidence: `append_action: ${set.action}` })];
  }
  const byFilter = late.find(isKey);
  const evidence =
    byFilter === undefined
      ? `nothing sets ${keyHeader}`
      : `${keyHeader} is set by filter ${textAt(filters[byFilter.position], 'name')}`;
  return [finding('key-not-early', { where, evidence })];
}
