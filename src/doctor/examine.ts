import { checkCallChain } from './call-chain.ts';
import { type FindingId, severities } from './catalogue.ts';
import { checkAttachment } from './checks/attachment.ts';
import { checkAuthority } from './checks/authority.ts';
import { checkOurClusters } from './checks/cluster.ts';
import { checkCounters } from './checks/counters.ts';
import { checkExtProcs } from './checks/ext-proc.ts';
import { checkKey } from './checks/key.ts';
import { checkLogs } from './checks/logs.ts';
import { checkMesh } from './checks/mesh.ts';
import { checkOrder } from './checks/order.ts';
import { checkProfiles } from './checks/profile.ts';
import { checkRoutes } from './checks/routes.ts';
import { checkSwitches } from './checks/switched-off.ts';
import { type FactKind, factKinds, type ProxyFacts } from './facts.ts';
import { type Finding, joined, type ProxyFinding } from './finding.ts';
import { checkHost, clustersFor, type HostCluster } from './host.ts';
import { examineManifests } from './istio/examine.ts';
import { isOlder, type Proxy, proxyOf } from './proxy.ts';
import type { Manifest, YamlFile } from './read/yaml.ts';
import { type ProxySummary, summaryOf } from './summary.ts';

/** What could not be looked at, and why: never taken for fine. */
export interface NotLooked {
  proxy: string;
  /** What of it. */
  what: string;
  why: string;
}

export interface Report {
  /** Worst first. */
  findings: readonly Finding[];
  proxies: readonly ProxySummary[];
  /** Of the host that was asked for: the clusters that its traffic may leave by. */
  hostClusters: readonly HostCluster[];
  /** What each YAML file held. */
  files: readonly { file: string; what: string }[];
  notLooked: readonly NotLooked[];
  /** Whether each source that was named gave something to look at. */
  isWhole: boolean;
}

/** What is to be looked at. */
export interface Examined {
  proxies: readonly ProxyFacts[];
  files: readonly YamlFile[];
  /** A host whose traffic is looked for, in small letters; absent: none. */
  host: string | undefined;
  /** Whether the proxies are given in the order of a call. */
  chain: boolean;
  /** Istio's; of files that are not applied yet. */
  rootNamespace: string;
  /** Findings that are left out. */
  ignored: readonly FindingId[];
}

const proxyChecks: readonly ((proxy: Proxy) => ProxyFinding[])[] = [
  checkAttachment,
  checkProfiles,
  checkOurClusters,
  checkAuthority,
  checkExtProcs,
  checkOrder,
  checkLogs,
  checkKey,
  checkCounters,
  checkRoutes,
  checkSwitches,
  checkMesh,
];

/** What each kind of facts is looked at for. */
const uses: Record<FactKind, string> = {
  'config-dump': 'what is attached',
  stats: 'counters: untagged requests, dropped entries, retries',
  clusters: 'hosts of clusters and their health',
  runtime: 'runtime flags',
  'server-info': 'the Envoy version',
};

/** Looks at everything that was given. */
export function examine({ proxies: given, files, host, chain, rootNamespace, ignored }: Examined): Report {
  const all = [...given, ...files.flatMap(({ proxies }) => proxies)];
  const proxies = all.flatMap((facts) => (facts.config === undefined ? [] : [proxyOf(facts, facts.config)]));
  const findings = [
    ...proxies.flatMap((proxy) =>
      joined(proxy.name, [
        ...proxyChecks.flatMap((check) => check(proxy)),
        ...(host === undefined ? [] : checkHost(proxy, host)),
      ]),
    ),
    ...(chain ? joined('', checkCallChain(proxies)) : []),
    ...joined(
      '',
      examineManifests(
        files.flatMap(({ manifests }) => manifests),
        rootNamespace,
      ),
    ),
  ];
  return {
    findings: worstFirst(findings.filter(({ id }) => !ignored.includes(id))),
    proxies: proxies.map(summaryOf),
    files: files.map(({ file, manifests }) => ({ file, what: kindsOf(manifests) })),
    hostClusters: host === undefined ? [] : proxies.flatMap((proxy) => clustersFor(proxy, host)),
    notLooked: [
      ...all.flatMap(notLookedOf),
      ...files.flatMap(unreadable),
      ...proxies.flatMap(notCounted),
      ...notInARow(proxies, chain),
    ],
    isWhole: proxies.length === all.length && files.every(({ problems }) => problems.length === 0),
  };
}

/** Envoy 1.37 and 1.38 with a dead service: logs_dropped stays 0. test/e2e/doctor.test.ts */
function notCounted({ name, version, attached, stats }: Proxy): NotLooked[] {
  const hasLogs = attached.some(({ logs }) => logs.length > 0);
  if (stats === undefined || !hasLogs || !isOlder(version, 1, 39)) return [];
  const why = 'Envoy before 1.39 counts them as written';
  return [{ proxy: name, what: 'log entries that were lost while Sidelight was away', why }];
}

/** One proxy cannot show what several in a row do. */
function notInARow(proxies: readonly Proxy[], chain: boolean): NotLooked[] {
  if (proxies.length === 0 || (chain && proxies.length > 1)) return [];
  return [
    {
      proxy: proxies.map(({ name }) => name).join(', '),
      what: 'retries layer over layer, and keys from hop to hop',
      why: 'that takes the proxies of a call in its order, with --chain',
    },
  ];
}

/** What EnvoyFilters are looked at with. */
const kindsBeside = new Set(['Gateway', 'VirtualService', 'HTTPRoute', 'Sidecar', 'Service', 'ServiceEntry']);

/** Which objects of a file were looked at, and which not. */
function kindsOf(manifests: readonly Manifest[]): string {
  const isFilter = ({ kind }: Manifest) => kind === 'EnvoyFilter';
  const isBeside = ({ kind }: Manifest) => kindsBeside.has(kind) && manifests.some(isFilter);
  const looked = countsOf(manifests.filter(isFilter)) || 'no EnvoyFilter';
  const beside = countsOf(manifests.filter(isBeside));
  const left = countsOf(manifests.filter((one) => !isFilter(one) && !isBeside(one)));
  return `looked at ${looked}${beside && `, with ${beside}`}${left && `; left aside ${left}`}`;
}

function countsOf(manifests: readonly Manifest[]): string {
  const byKind = Map.groupBy(manifests, ({ kind }) => kind);
  return Array.from(byKind, ([kind, { length }]) => `${length} ${kind}`).join(', ');
}

function unreadable({ file, problems }: YamlFile): NotLooked[] {
  return problems.map((why) => ({ proxy: file, what: 'this file', why }));
}

function worstFirst(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
}

function notLookedOf(facts: ProxyFacts): NotLooked[] {
  const has: Record<FactKind, boolean> = {
    'config-dump': facts.config !== undefined,
    stats: facts.stats !== undefined,
    clusters: facts.hosts !== undefined,
    runtime: facts.runtime !== undefined,
    'server-info': facts.serverVersion !== undefined || facts.config?.version !== undefined,
  };
  const absent = factKinds
    .filter((kind) => !has[kind])
    .map((kind) => ({ proxy: facts.name, what: uses[kind], why: facts.missing?.[kind] ?? `no ${kind} was given` }));
  if (facts.stats?.isWhole !== false) return absent;
  const why = 'the statistics leave out what never moved (usedonly)';
  return [...absent, { proxy: facts.name, what: 'which statistics are not collected', why }];
}
