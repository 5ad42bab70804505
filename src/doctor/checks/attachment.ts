import type { Chain } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import type { Proxy } from '../proxy.ts';

/** Istio's listener that takes HBONE's CONNECT streams apart: its requests are tunnels. */
const tunnelListener = 'connect_terminate';
/** The one that puts connections into them, which their own listeners have seen already. */
const originateListener = 'connect_originate';

/** Whether anything is attached, and whether it is everywhere where it should be. */
export function checkAttachment({ attached, chains, config }: Proxy): ProxyFinding[] {
  if (attached.length === 0 && config.isPartial) return [];
  if (attached.length === 0) {
    const seen = `${chains.length} filter chains on ${config.listeners.length} listeners: no ext_proc filter with x-sidelight-profile, no log named sidelight.*`;
    return [finding('nothing-attached', { where: 'all listeners', evidence: seen })];
  }
  const http = chains.filter(({ kind }) => kind === 'http');
  const isHere = (chain: Chain) => attached.includes(chain);
  const tunnels = http.filter((chain) => chain.listener === tunnelListener && isHere(chain));
  return [
    ...tunnels.map(({ where }) =>
      finding('attached-to-tunnel', { where, evidence: `the listener is named ${tunnelListener}` }),
    ),
    ...beside(http.filter(({ listener }) => listener !== tunnelListener)).flatMap((group) =>
      notAttached(group, isHere),
    ),
    ...tcpNotLogged(chains, isHere),
  ];
}

/** Chains of one direction: a patch takes inbound and outbound listeners separately. */
function beside(chains: readonly Chain[]): Chain[][] {
  return Object.values(Object.groupBy(chains, ({ direction }) => direction));
}

function notAttached(group: readonly Chain[], isHere: (chain: Chain) => boolean): ProxyFinding[] {
  const [example] = group.filter(isHere);
  if (example === undefined) return [];
  const without = group.filter((chain) => !isHere(chain));
  return without.map(({ where }) =>
    finding('chain-not-attached', { where, evidence: `nothing of Sidelight here; ${example.where} is attached` }),
  );
}

const directionOf = ({ direction }: Chain) => direction;

function tcpNotLogged(chains: readonly Chain[], isHere: (chain: Chain) => boolean): ProxyFinding[] {
  // Who attached one direction alone has chosen so.
  const logged = new Set(chains.filter(({ kind, logs }) => kind === 'http' && logs.length > 0).map(directionOf));
  const without = chains.filter(
    (chain) =>
      chain.kind === 'tcp' && logged.has(chain.direction) && chain.listener !== originateListener && !isHere(chain),
  );
  const [first] = without;
  const more = without.length > 1 ? ` and ${without.length - 1} more` : '';
  return findingIf(first !== undefined, 'tcp-not-logged', {
    where: `${first?.where ?? ''}${more}`,
    evidence: 'a tcp_proxy without a log of Sidelight',
  });
}
