import { isAttachedHttp } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import type { Proxy } from '../proxy.ts';

/** What Envoy has counted of ours since it began. */
export function checkCounters(proxy: Proxy): ProxyFinding[] {
  if (proxy.stats === undefined || proxy.attached.length === 0) return [];
  return [...failedOpen(proxy), ...dropped(proxy), ...noRequests(proxy)];
}

function failedOpen({ stats, attached }: Proxy): ProxyFinding[] {
  const prefixes = new Map(
    attached
      .filter(isAttachedHttp)
      .flatMap(({ statPrefix, extProcs, where }) => extProcs.map(() => [statPrefix, where] as const)),
  );
  return Array.from(prefixes).flatMap(([prefix, where]) => {
    const counted = (what: string) => sumOf(stats?.values ?? new Map(), `http.${prefix}.ext_proc.`, what);
    const allowed = counted('failure_mode_allowed');
    if (allowed === undefined) {
      return findingIf(stats?.isWhole === true, 'ext-proc-stats-absent', {
        where,
        evidence: `there is no http.${prefix}.ext_proc.failure_mode_allowed`,
      });
    }
    return findingIf(allowed > 0, 'failed-open', {
      where,
      evidence: `failure_mode_allowed: ${allowed} of streams_started: ${counted('streams_started') ?? 0}; message_timeouts: ${counted('message_timeouts') ?? 0}`,
    });
  });
}

/** A filter may have a prefix of its own between the two. */
function sumOf(values: ReadonlyMap<string, number>, prefix: string, what: string): number | undefined {
  const found = Array.from(values).filter(([name]) => name.startsWith(prefix) && name.endsWith(`.${what}`));
  return found.length === 0 ? undefined : found.reduce((sum, [, value]) => sum + value, 0);
}

function dropped({ stats, attached }: Proxy): ProxyFinding[] {
  const name = 'access_logs.grpc_access_log.logs_dropped';
  const count = stats?.values.get(name) ?? 0;
  const hasLogs = attached.some(({ logs }) => logs.length > 0);
  return findingIf(hasLogs && count > 0, 'entries-dropped', {
    where: 'all gRPC access logs of this Envoy',
    evidence: `${name}: ${count}; logs_written: ${stats?.values.get('access_logs.grpc_access_log.logs_written') ?? 0}`,
  });
}

function noRequests({ stats, attached }: Proxy): ProxyFinding[] {
  const http = attached.filter(isAttachedHttp);
  const counts = http.map(({ statPrefix }) => stats?.values.get(`http.${statPrefix}.downstream_rq_total`));
  const isQuiet = counts.length > 0 && counts.every((count) => count === 0);
  const prefixes = [...new Set(http.map(({ statPrefix }) => statPrefix))];
  return isQuiet
    ? [
        finding('no-requests', {
          where: http.map(({ where }) => where).join('; '),
          evidence: `http.${prefixes.join(', http.')}: downstream_rq_total: 0`,
        }),
      ]
    : [];
}
