import type { FactKind, ProxyFacts, Read } from '../facts.ts';
import { parseJson, readClusters, readRuntime, readServerVersion, readStats } from './answers.ts';
import { readConfigDump } from './config-dump.ts';

/** What was read of one proxy: a text, or why there is none. */
export type Texts = Partial<Record<FactKind, Read>>;

const shapes: Record<FactKind, string> = {
  'config-dump': 'not the JSON of /config_dump',
  stats: 'not what /stats prints, as text or with format=json',
  clusters: 'not the JSON of /clusters?format=json',
  runtime: 'not the JSON of /runtime',
  'server-info': 'not the JSON of /server_info',
};

/** Texts to facts. What has another shape than it should is said in `missing`. */
export function factsOf(source: string, texts: Texts): ProxyFacts {
  const missing: Partial<Record<FactKind, string>> = {};
  const textOf = (kind: FactKind) => {
    const given = texts[kind];
    if (given !== undefined && 'problem' in given) missing[kind] = given.problem;
    return given !== undefined && 'text' in given ? given.text : undefined;
  };
  const read = <T>(kind: FactKind, of: (text: string) => T | undefined): T | undefined => {
    const text = textOf(kind);
    const value = text === undefined ? undefined : of(text);
    if (text !== undefined && value === undefined) missing[kind] = shapes[kind];
    return value;
  };
  const config = read('config-dump', (text) => readConfigDump(parseJson(text)));
  return {
    name: config === undefined || config.nodeId === '' ? source : config.nodeId,
    config,
    stats: read('stats', readStats),
    hosts: read('clusters', readClusters),
    runtime: read('runtime', readRuntime),
    serverVersion: read('server-info', readServerVersion),
    missing,
  };
}
