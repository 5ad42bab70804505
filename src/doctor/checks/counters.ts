import { isAttachedHttp } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { type Proxy, statName } from '../proxy.ts';

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
  const counts = extProcCounts(stats?.values ?? new Map());
  return Array.from(prefixes).flatMap(([prefix, where]) => {
    const counted = (what: string) => counts.get(`${statName(prefix)} ${what}`);
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

/** Of every connection manager, by `PREFIX COUNTER`. A filter may have a prefix of its own between the two. */
function extProcCounts(values: ReadonlyMap<string, number>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [name, value] of values) {
    const [, prefix, what] = /^http\.(.+)\.ext_proc\.(?:.*\.)?([a-z_]+)$/.exec(name) ?? [];
    if (prefix === undefined || what === undefined) continue;
    const key = `${prefix} ${what}`;
    counts.set(key, (counts.get(key) ?? 0) + value);
  }
  return counts;
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
  const counts = http.map(({ statPrefix }) => stats?.values.get(`http.${statName(statPrefix)}.downstream_rq_total`));
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
