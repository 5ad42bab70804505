import { type HttpChain, isAttachedHttp } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { findTyped, type JsonObject, textAt } from '../json.ts';
import { type Proxy, statName } from '../proxy.ts';

/** What Envoy has counted of ours since it began. */
export function checkCounters(proxy: Proxy): ProxyFinding[] {
  if (proxy.stats === undefined || proxy.attached.length === 0) return [];
  return [...failedOpen(proxy), ...dropped(proxy), ...noRequests(proxy)];
}

function failedOpen({ stats, attached }: Proxy): ProxyFinding[] {
  const chains = attached.filter(isAttachedHttp);
  const byName = new Map(
    chains.flatMap((chain) => chain.extProcs.map(({ config }) => [countersOf(chain, config), chain] as const)),
  );
  return Array.from(byName).flatMap(([counters, chain]) => {
    const { where } = chain;
    const counted = (what: string) => stats?.values.get(`${counters}.${what}`);
    const allowed = counted('failure_mode_allowed');
    if (allowed === undefined) {
      return findingIf(stats?.isWhole === true, 'ext-proc-stats-absent', {
        where,
        evidence: `there is no ${counters}.failure_mode_allowed`,
      });
    }
    const others = chains.flatMap((one) => othersCountedAs(one, counters));
    const shared = others.length === 0 ? '' : `; counted together with ${[...new Set(others)].join(', ')}`;
    return findingIf(allowed > 0, 'failed-open', {
      where,
      evidence: `failure_mode_allowed: ${allowed} of streams_started: ${counted('streams_started') ?? 0}; message_timeouts: ${counted('message_timeouts') ?? 0}${shared}`,
    });
  });
}

/** What the names of a filter's counters begin with: they are its own only if it has a prefix, which Envoy puts last. */
function countersOf({ statPrefix }: HttpChain, extProc: JsonObject): string {
  const own = textAt(extProc, 'stat_prefix');
  return `http.${statName(statPrefix)}.ext_proc${own === '' ? '' : `.${statName(own)}`}`;
}

/** The ext_proc filters of others, by name, that Envoy counts under the same names. */
function othersCountedAs(chain: HttpChain, counters: string): string[] {
  const ours = chain.extProcs.map(({ filter }) => filter);
  return chain.filters
    .filter((filter) => !ours.includes(filter))
    .filter((filter) =>
      findTyped(filter['typed_config'], 'ExternalProcessor').some((config) => countersOf(chain, config) === counters),
    )
    .map((filter) => textAt(filter, 'name'));
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
