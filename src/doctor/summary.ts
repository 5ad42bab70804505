import { isAttachedHttp } from './chains.ts';
import { nameParts } from './checks/logs.ts';
import { addressesOf, type Proxy } from './proxy.ts';

/** What is attached, in one proxy. */
export interface ProxySummary {
  proxy: string;
  /** Absent: nothing says it. */
  envoyVersion: string | undefined;
  attached: readonly AttachedChain[];
  /** Filter chains with HTTP or TCP proxies, attached or not. */
  chains: number;
  clusters: readonly { cluster: string; hosts: readonly string[] }[];
}

export interface AttachedChain {
  where: string;
  /** `full`, `tag`, `observe`; `''`: it says none. */
  profile: string;
  /** Of the log's name; absent: it has no log, or the name has another shape. */
  configVersion: number | undefined;
}

export function summaryOf(proxy: Proxy): ProxySummary {
  return {
    proxy: proxy.name,
    envoyVersion: proxy.version,
    attached: proxy.attached.map((chain) => {
      const name = chain.logs.map(({ logName }) => nameParts(logName)).find((parts) => parts !== undefined);
      const said = isAttachedHttp(chain) ? chain.extProcs[0]?.profile : undefined;
      return {
        where: chain.where,
        profile: said ?? name?.[1] ?? '',
        configVersion: name === undefined ? undefined : Number(name[2] ?? 1),
      };
    }),
    chains: proxy.chains.length,
    clusters: proxy.ourClusters.map((cluster) => ({ cluster, hosts: addressesOf(proxy, cluster) })),
  };
}
