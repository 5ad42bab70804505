import { isAttachedHttp } from './chains.ts';
import { checkKey } from './checks/key.ts';
import { finding, type ProxyFinding } from './finding.ts';
import { keyHeader } from './parts.ts';
import type { Proxy } from './proxy.ts';
import { routesOf } from './routes.ts';

/** What only several proxies in the order of a call can show, the client's first. */
export function checkCallChain(proxies: readonly Proxy[]): ProxyFinding[] {
  return [...retryLayers(proxies), ...keys(proxies)];
}

/** From so many on it is worth a word: two layers are usual in a mesh. */
const leastLayers = 3;

function retryLayers(proxies: readonly Proxy[]): ProxyFinding[] {
  const layers = proxies.map((proxy) => ({ name: proxy.name, retries: mostRetries(proxy) }));
  const runs = layers.reduce<(typeof layers)[]>(
    (all, layer) => (layer.retries === 0 ? [...all, []] : [...all.slice(0, -1), [...(all.at(-1) ?? []), layer]]),
    [[]],
  );
  return runs
    .filter(({ length }) => length >= leastLayers)
    .map((run) => {
      const sends = run.reduce((product, { retries }) => product * (retries + 1), 1);
      return finding('retry-layers', {
        where: run.map(({ name }) => name).join(' → '),
        evidence: `retries: ${run.map(({ retries }) => retries).join(' × ')}: up to ${sends} sends for one request`,
      });
    });
}

function mostRetries({ chains }: Proxy): number {
  const all = chains.flatMap((chain) => (chain.kind === 'http' ? routesOf(chain).map(({ retries }) => retries) : []));
  return Math.max(0, ...all);
}

function keys(proxies: readonly Proxy[]): ProxyFinding[] {
  return proxies.slice(1).flatMap((next, index) => {
    const before = proxies[index];
    const sets = before?.attached
      .filter(isAttachedHttp)
      .some(({ early, late }) => [...early, ...late].some(({ header }) => header === keyHeader));
    const [fault] = checkKey(next);
    const logs = next.attached.some((chain) => chain.kind === 'http' && chain.logs.length > 0);
    if (before === undefined || sets !== true || fault === undefined || !logs) return [];
    return [
      finding('next-hop-key', {
        where: `${before.name} → ${next.name}, ${fault.where}`,
        evidence: `${before.name} sends ${keyHeader}; at ${next.name} ${fault.evidence}`,
      }),
    ];
  });
}
