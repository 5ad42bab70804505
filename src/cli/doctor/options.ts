import { type FindingId, findingIds } from '../../doctor/catalogue.ts';
import { type FactKind, factKinds } from '../../doctor/facts.ts';
import { nearName } from '../../lib/near-name.ts';
import { shortText } from '../../lib/short-text.ts';
import { parseDuration } from '../duration.ts';

/** Files of one proxy; `-` is standard input. */
export type ProxyFiles = Partial<Record<FactKind, string>>;

export interface DoctorOptions {
  /** Admin interfaces of Envoys. */
  urls: readonly URL[];
  /** YAML that is not applied yet. */
  yamlFiles: readonly string[];
  proxyFiles: readonly ProxyFiles[];
  /** Asks which cluster carried its traffic. */
  host: string | undefined;
  /** The proxies are given in the order of a call. */
  chain: boolean;
  /** Istio's. */
  rootNamespace: string;
  ignored: readonly FindingId[];
  /** For one answer of an admin interface. */
  timeoutMs: number;
  json: boolean;
}

/** As the command line has them: the first file of each kind belongs to the first proxy, the second to the second. */
export interface DoctorFlags {
  configDump?: readonly string[];
  stats?: readonly string[];
  clusters?: readonly string[];
  runtime?: readonly string[];
  serverInfo?: readonly string[];
  host?: string;
  chain?: true;
  rootNamespace: string;
  ignore?: readonly string[];
  timeout: string;
  json?: true;
}

export const defaultTimeout = '10s';

/** The options, or every mistake at once. */
export function parseDoctor(
  targets: readonly string[],
  flags: DoctorFlags,
): { ok: true; options: DoctorOptions } | { ok: false; problems: string[] } {
  const problems: string[] = [];
  const urlTexts = targets.filter((target) => target.includes('://'));
  const yamlFiles = targets.filter((target) => !target.includes('://'));
  const urls = urlTexts.flatMap((text) => parseUrl(text) ?? (problems.push(wrongUrl(text)), []));
  const timeoutMs = parseDuration(flags.timeout);
  if (timeoutMs === undefined || timeoutMs === 0) {
    problems.push(`--timeout: found ${shortText(flags.timeout)}: expected a duration above 0 such as 500ms or 10s`);
  }
  if (flags.host === '') problems.push('--host: found "": expected a host name, with or without a port');
  if (flags.rootNamespace === '') problems.push('--root-namespace: found "": expected the name of a namespace');
  const ignored = (flags.ignore ?? []).flatMap((id) => knownId(id) ?? (problems.push(wrongId(id)), []));
  const files = filesOf(flags);
  const fromStdin = [...yamlFiles, ...files.flatMap((one) => Object.values(one))].filter((file) => file === '-');
  if (fromStdin.length > 1) problems.push('-: standard input can be read once only');
  if (targets.length === 0 && files.length === 0) {
    problems.push('nothing to look at: expected URL… of admin interfaces, FILE.yaml…, or --config-dump FILE');
  }
  if (problems.length > 0 || timeoutMs === undefined) return { ok: false, problems };
  const { host, chain, json, rootNamespace } = flags;
  const rest = {
    host: host?.toLowerCase(),
    chain: chain === true,
    rootNamespace,
    ignored,
    timeoutMs,
    json: json === true,
  };
  return { ok: true, options: { urls, yamlFiles, proxyFiles: files, ...rest } };
}

function parseUrl(text: string): URL | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  return url;
}

function wrongUrl(text: string): string {
  return `URL: found ${shortText(text)}: expected an admin interface such as http://127.0.0.1:9901, without a query`;
}

function knownId(id: string): FindingId | undefined {
  return findingIds.find((known) => known === id);
}

function wrongId(id: string): string {
  const near = nearName(id, findingIds);
  return `--ignore: found ${shortText(id)}: expected the id of a finding${near === undefined ? '' : `, perhaps ${near}`}`;
}

function filesOf(flags: DoctorFlags): ProxyFiles[] {
  const byKind: Record<FactKind, readonly string[]> = {
    'config-dump': flags.configDump ?? [],
    stats: flags.stats ?? [],
    clusters: flags.clusters ?? [],
    runtime: flags.runtime ?? [],
    'server-info': flags.serverInfo ?? [],
  };
  const count = Math.max(...Object.values(byKind).map(({ length }) => length));
  return Array.from({ length: count }, (_, index) =>
    Object.fromEntries(
      factKinds.flatMap((kind) => {
        const file = byKind[kind][index];
        return file === undefined ? [] : [[kind, file]];
      }),
    ),
  );
}
