import { type HttpChain, isAttachedHttp } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { type JsonObject, objectsAt, textAt, typeOf } from '../json.ts';
import { internalPrefix } from '../parts.ts';
import type { Proxy } from '../proxy.ts';
import { internalHeaders } from '../shipped.ts';

/** The order of our filters, and what makes connection ids and ages reach Sidelight and nobody else. */
export function checkOrder({ attached }: Proxy): ProxyFinding[] {
  return attached.filter(isAttachedHttp).flatMap((chain) => {
    const [extProc] = chain.extProcs;
    if (extProc === undefined) return leak(chain);
    const { position, filterName } = extProc;
    return [
      ...wrongOrder(chain, position),
      ...ages(chain, position),
      ...leak(chain),
      ...filtersAfter(chain, position),
      ...findingIf(filterName === 'envoy.filters.http.ext_proc', 'default-filter-name', {
        where: chain.where,
        evidence: `name: ${filterName}`,
      }),
    ];
  });
}

const isInternal = ({ header }: { header: string }) => header.startsWith(internalPrefix);
const nameAt = ({ filters }: HttpChain, position: number) => textAt(filters[position], 'name');

/** Responses pass the filters from the last to the first. */
function wrongOrder(chain: HttpChain, extProcAt: number): ProxyFinding[] {
  const addsTooEarly = chain.added.filter(isInternal).find(({ position }) => position < extProcAt);
  const removesTooLate = chain.removed.filter(isInternal).find(({ position }) => position > extProcAt);
  const wrong = (position: number, what: string) =>
    finding('filter-order', {
      where: chain.where,
      evidence: `${nameAt(chain, position)} ${what} ${nameAt(chain, extProcAt)}`,
    });
  return [
    ...(addsTooEarly === undefined ? [] : [wrong(addsTooEarly.position, 'adds its headers before')]),
    ...(removesTooLate === undefined ? [] : [wrong(removesTooLate.position, 'removes the headers after')]),
  ];
}

function ages(chain: HttpChain, extProcAt: number): ProxyFinding[] {
  const added = new Set(chain.added.map(({ header }) => header));
  const notAdded = internalHeaders.filter((header) => !added.has(header));
  const allowed = allowedHeaders(chain, extProcAt);
  const notAllowed = allowed === undefined ? [] : internalHeaders.filter((header) => !allowed.some((is) => is(header)));
  return [
    ...findingIf(notAdded.length > 0, 'age-not-sent', {
      where: chain.where,
      evidence: `no filter adds ${notAdded.join(', ')}`,
    }),
    ...findingIf(notAdded.length === 0 && notAllowed.length > 0, 'age-not-sent', {
      where: `${chain.where}, filter ${nameAt(chain, extProcAt)}`,
      evidence: `forward_rules.allowed_headers leaves out ${notAllowed.join(', ')}`,
    }),
  ];
}

/** What is allowed to be sent; `undefined`: everything. */
function allowedHeaders({ extProcs }: HttpChain, extProcAt: number): ((header: string) => boolean)[] | undefined {
  const config = extProcs.find(({ position }) => position === extProcAt)?.config;
  const patterns = objectsAt(config, 'forward_rules', 'allowed_headers', 'patterns');
  return patterns.length === 0 ? undefined : patterns.map((pattern) => (header) => matches(pattern, header));
}

function matches(pattern: JsonObject, header: string): boolean {
  const { exact, prefix, suffix, contains } = pattern;
  return (
    exact === header ||
    (typeof prefix === 'string' && header.startsWith(prefix)) ||
    (typeof suffix === 'string' && header.endsWith(suffix)) ||
    (typeof contains === 'string' && header.includes(contains)) ||
    pattern['safe_regex'] !== undefined
  );
}

/** Headers for Sidelight alone that nothing takes away again. */
function leak(chain: HttpChain): ProxyFinding[] {
  const removed = new Set(chain.removed.map(({ header }) => header));
  const leaking = [...new Set(chain.added.filter(isInternal).map(({ header }) => header))].filter(
    (header) => !removed.has(header),
  );
  return findingIf(leaking.length > 0, 'internal-headers-leak', {
    where: chain.where,
    evidence: `added and not removed: ${leaking.join(', ')}`,
  });
}

const harmless = new Set(['Router', 'HeaderMutation']);

/** Filters of the user between ours and the router. */
function filtersAfter(chain: HttpChain, extProcAt: number): ProxyFinding[] {
  const ours = new Set(chain.extProcs.map(({ filter }) => filter));
  const after = chain.filters
    .slice(extProcAt + 1)
    .filter((filter) => !ours.has(filter) && !harmless.has(typeOf(filter['typed_config'])));
  return findingIf(after.length > 0, 'filter-after-ours', {
    where: chain.where,
    evidence: `after ${nameAt(chain, extProcAt)}: ${after.map((filter) => textAt(filter, 'name')).join(', ')}`,
  });
}
