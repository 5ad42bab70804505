import type { Json } from '../../../src/lab/envoy-config.ts';

interface NetworkFilter {
  name: string;
  typedConfig?: Json & {
    httpFilters?: { name: string; typedConfig?: { upstreamLog?: Logger[]; upstreamLogOptions?: Json } }[];
    accessLog?: Logger[];
    accessLogOptions?: Json;
    earlyHeaderMutationExtensions?: Json[];
  };
}
interface Logger {
  typedConfig?: { commonConfig?: { logName?: string } };
}
interface Chain {
  name?: string;
  filters?: NetworkFilter[];
}

const ours = /sidelight/;

/**
 * What of Sidelight each filter chain has, one line for each: `LISTENER CHAIN http key, log, remove, tag, add, attempts`.
 * Chains without anything of ours are not there.
 */
export function attachedChains(listeners: readonly Json[]): string[] {
  return listeners.flatMap((listener) => {
    const {
      name,
      filterChains = [],
      defaultFilterChain,
    } = listener as {
      name: string;
      filterChains?: Chain[];
      defaultFilterChain?: Chain;
    };
    const chains = defaultFilterChain ? [...filterChains, defaultFilterChain] : filterChains;
    return chains.flatMap((chain) =>
      (chain.filters ?? []).flatMap((filter) => {
        const parts = filter.name.endsWith('tcp_proxy') ? tcpParts(filter) : httpParts(filter);
        if (parts.length === 0) return [];
        const kind = filter.name.endsWith('tcp_proxy') ? 'tcp' : 'http';
        return [`${name} ${chain.name ?? '-'} ${kind} ${parts.join(', ')}`];
      }),
    );
  });
}

function tcpParts({ typedConfig: proxy }: NetworkFilter): string[] {
  const log = ourLogs(proxy?.accessLog).map((name) => `log ${name}`);
  return proxy?.accessLogOptions?.['accessLogFlushInterval'] === '5s' ? [...log, 'every 5s'] : log;
}

function httpParts({ typedConfig: manager }: NetworkFilter): string[] {
  const filters = manager?.httpFilters ?? [];
  const early = JSON.stringify(manager?.earlyHeaderMutationExtensions ?? []);
  const names = filters.map(({ name }) => name);
  const firstOfOurs = names.findIndex((name) => ours.test(name));
  const router = filters.at(-1)?.typedConfig;
  return [
    ...(early.includes('x-sidelight-key') ? ['key'] : []),
    ...ourLogs(manager?.accessLog).map((name) => `log ${name}`),
    // Ours are the last ones, so that what stands from the first of them on must be ours and the router.
    ...(firstOfOurs < 0 ? [] : names.slice(firstOfOurs).map((name) => name.replace('envoy.filters.http.', ''))),
    ...ourLogs(router?.upstreamLog).map((name) => `attempts ${name}`),
    ...(router?.upstreamLogOptions?.['upstreamLogFlushInterval'] === '5s' ? ['every 5s'] : []),
  ];
}

function ourLogs(loggers: readonly Logger[] | undefined): string[] {
  return (loggers ?? [])
    .map(({ typedConfig }) => typedConfig?.commonConfig?.logName ?? '')
    .filter((name) => ours.test(name));
}
