import type { Chain } from '../chains.ts';
import { finding, type ProxyFinding } from '../finding.ts';
import { listAt, objectAt, textAt } from '../json.ts';
import { clusterNamed, type Proxy } from '../proxy.ts';

/**
 * Node resets a request whose authority has a bar in it before any code of Sidelight runs, and Istio's cluster names have
 * three. test/unit/ingress-authority.test.ts.
 */
const refused = /\|/;

/** Whether Sidelight takes calls by the names that these parts call it by. */
export function checkAuthority(proxy: Proxy): ProxyFinding[] {
  return [...proxy.attached.flatMap(ofChain), ...proxy.ourClusters.flatMap((name) => ofHealthCheck(proxy, name))];
}

function ofChain(chain: Chain): ProxyFinding[] {
  const parts = chain.kind === 'http' ? [...chain.extProcs, ...chain.logs] : chain.logs;
  return [...new Set(parts.map(({ authority }) => authority))]
    .filter((authority) => refused.test(authority))
    .map((authority) => finding('authority-refused', { where: chain.where, evidence: `authority: ${authority}` }));
}

function ofHealthCheck(proxy: Proxy, name: string): ProxyFinding[] {
  const checks = listAt(clusterNamed(proxy, name), 'health_checks');
  return checks.flatMap((check) => {
    const isGrpc = Object.keys(objectAt(check)).includes('grpc_health_check');
    const authority = textAt(check, 'grpc_health_check', 'authority') || name;
    if (!isGrpc || !refused.test(authority)) return [];
    return [finding('authority-refused', { where: `cluster ${name}`, evidence: `grpc_health_check: ${authority}` })];
  });
}
