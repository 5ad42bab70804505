import { catalogue, type Severity } from '../../doctor/catalogue.ts';
import type { NotLooked, Report } from '../../doctor/examine.ts';
import type { Finding } from '../../doctor/finding.ts';
import type { HostCluster } from '../../doctor/host.ts';
import type { AttachedChain, ProxySummary } from '../../doctor/summary.ts';
import { trafficText } from '../../doctor/traffic.ts';
import { plural, printable } from '../drained/words.ts';

const mostPlaces = 5;

/** The report for people: what is wrong, worst first; then what is attached; then what was not looked at. */
export function reportText(report: Report): string {
  return [
    ...report.findings.flatMap((one) => [...findingLines(one), '']),
    ...report.proxies.flatMap(proxyLines),
    ...report.hostClusters.map(hostLine),
    ...report.files.map(({ file, what }) => `${file}: ${what}`),
    ...notLookedLines(report.notLooked),
    totals(report.findings),
  ]
    .map(printable)
    .join('\n');
}

function findingLines({ id, severity, proxy, where, evidence, remedy, page }: Finding): string[] {
  return [
    `${severity.padEnd(8)}${id}: ${catalogue[id].title}`,
    `        where: ${proxy === '' ? '' : `${proxy}: `}${shortList(where)}`,
    `        seen:  ${evidence}`,
    `        do:    ${remedy}`,
    `        page:  ${page}`,
  ];
}

function shortList(places: readonly string[]): string {
  const more = places.length - mostPlaces;
  return [...places.slice(0, mostPlaces), ...(more > 0 ? [`and ${more} more (--json has all)`] : [])].join('; ');
}

function proxyLines({ proxy, envoyVersion, attached, chains, clusters }: ProxySummary): string[] {
  const groups = Map.groupBy(attached, chainText);
  return [
    `${proxy}, Envoy ${envoyVersion ?? 'of unknown version'}: ${attached.length} of ${plural(chains, 'filter chain')} attached`,
    ...Array.from(groups, ([text, same]) => `  ${text}: ${shortList(same.map(({ where }) => where))}`),
    ...clusters.map(({ cluster, hosts }) => `  to cluster ${cluster}: ${shortList(hosts) || 'no host is known'}`),
  ];
}

function chainText({ profile, configVersion }: AttachedChain): string {
  const version = configVersion === undefined ? '' : `, config version ${configVersion}`;
  return `profile ${profile === '' ? 'unknown' : profile}${version}`;
}

function hostLine({ proxy, cluster, by, traffic }: HostCluster): string {
  return `by cluster ${cluster}: ${trafficText(traffic)} (${proxy}: ${by})`;
}

function notLookedLines(all: readonly NotLooked[]): string[] {
  // A reason may begin with its file, which the proxy is named after.
  return all.map(({ proxy, what, why }) => {
    const reason = why.startsWith(`${proxy}: `) ? why : `${proxy}: ${why}`;
    return `not looked at: ${what} (${reason})`;
  });
}

function totals(findings: readonly Finding[]): string {
  const count = (severity: Severity) => findings.filter((one) => one.severity === severity).length;
  return `${plural(count('error'), 'error')}, ${plural(count('warning'), 'warning')}, ${count('info')} for information`;
}
