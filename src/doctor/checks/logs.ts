import { type Chain, isAttachedHttp } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { canonical, isObject, listAt, textAt } from '../json.ts';
import { isKeyTag, type LogPart, tagNames } from '../parts.ts';
import type { Proxy } from '../proxy.ts';
import { shippedTags, shippedVersion } from '../shipped.ts';
import { logSwitch } from './switched-off.ts';

/** The access logs of ours. */
export function checkLogs({ attached }: Proxy): ProxyFinding[] {
  return attached.flatMap((chain) => [
    ...chain.logs.flatMap((log) => checkLog(log, placeOf(chain, log))),
    ...bothThere(chain),
    ...flushes(chain),
    ...differing(chain),
  ]);
}

const fields: Record<LogPart['kind'], string> = {
  request: 'access_log',
  attempt: "the router's upstream_log",
  tcp: 'access_log of tcp_proxy',
};

function placeOf({ where }: Chain, { kind }: LogPart): string {
  return `${where}, ${fields[kind]}`;
}

/** One log, wherever it is written. */
function checkLog(log: LogPart, where: string): ProxyFinding[] {
  const { logName, logger, kind } = log;
  const [, , version] = nameParts(logName) ?? [];
  const isTcp = kind === 'tcp';
  const isOld = nameParts(logName) !== undefined && Number(version ?? 1) < shippedVersion;
  const names = tagNames(log);
  const missing = shippedTags.filter((tag) => !names.includes(tag));
  return [
    ...findingIf(nameParts(logName) === undefined, 'log-name-unknown', { where, evidence: `log_name: ${logName}` }),
    ...findingIf(isOld, 'config-old', {
      where,
      evidence: `log_name: ${logName}; shipped is version ${shippedVersion}`,
    }),
    ...findingIf(isFiltered(log), 'logger-filtered', {
      where,
      evidence: `filter: ${canonical(logger['filter'])}`,
    }),
    ...findingIf(
      !isTcp && !listAt(log.common, 'custom_tags').some((tag) => isObject(tag) && isKeyTag(tag)),
      'key-not-logged',
      {
        where,
        evidence: `custom_tags: ${names.join(', ') || 'none'}`,
      },
    ),
    ...findingIf(!isOld && missing.length > 0, 'tags-missing', { where, evidence: `not there: ${missing.join(', ')}` }),
  ];
}

/** A switch that lets every entry pass leaves none out; whether it is thrown is told elsewhere. */
function isFiltered(log: LogPart): boolean {
  return log.logger['filter'] !== undefined && logSwitch(log)?.percent !== 100;
}

/** `sidelight.PROFILE` (version 1) or `sidelight.PROFILE.N`, as the service reads it. */
export function nameParts(logName: string): RegExpExecArray | undefined {
  return /^sidelight\.(full|observe)(?:\.([2-9]|[1-9]\d{1,3}))?$/.exec(logName) ?? undefined;
}

function bothThere(chain: Chain): ProxyFinding[] {
  if (!isAttachedHttp(chain) || chain.logs.length === 0) return [];
  const missing = (['request', 'attempt'] as const).filter((kind) => !chain.logs.some((log) => log.kind === kind));
  return missing.map((kind) =>
    finding('logger-missing', { where: chain.where, evidence: `no log of Sidelight in ${fields[kind]}` }),
  );
}

function flushes(chain: Chain): ProxyFinding[] {
  if (chain.kind === 'tcp') {
    const interval = textAt(chain.proxy, 'access_log_options', 'access_log_flush_interval');
    return findingIf(interval === '', 'no-periodic-flush', {
      where: `${chain.where}, tcp_proxy`,
      evidence: 'no access_log_options.access_log_flush_interval',
    });
  }
  const isLogged = chain.logs.some(({ kind }) => kind === 'attempt');
  const interval = textAt(chain.router, 'upstream_log_options', 'upstream_log_flush_interval');
  return findingIf(isLogged && interval === '', 'no-periodic-flush', {
    where: `${chain.where}, router`,
    evidence: 'no upstream_log_options.upstream_log_flush_interval',
  });
}

/** Logs with different configs open different streams. Of another chain they may: there are other requests. */
function differing(chain: Chain): ProxyFinding[] {
  const [first, ...others] = chain.logs;
  if (first === undefined) return [];
  const text = canonical(first.common);
  return others
    .filter(({ common }) => canonical(common) !== text)
    .map((log) =>
      finding('loggers-differ', {
        where: placeOf(chain, log),
        evidence: `${differenceOf(first, log)}; compared with ${fields[first.kind]}`,
      }),
    );
}

function differenceOf({ common: a }: LogPart, { common: b }: LogPart): string {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return `different: ${keys.filter((key) => canonical(a[key]) !== canonical(b[key])).join(', ')}`;
}
