import { type Document, parseAllDocuments } from 'yaml';
import type { ProxyFacts, Read } from '../facts.ts';
import { isObject, type JsonObject, objectsAt, snakeCase, textAt } from '../json.ts';
import { readBootstrap, readConfigDump } from './config-dump.ts';

/** A Kubernetes object of a file. */
export interface Manifest {
  /** `file.yaml: document 2, EnvoyFilter app/name` */
  where: string;
  kind: string;
  /** With field names as protobuf spells them. */
  value: JsonObject;
}

/** What a file holds. */
export interface YamlFile {
  file: string;
  /** Why nothing of it, or not all of it, could be read. */
  problems: readonly string[];
  /** An Envoy bootstrap, or a config dump. */
  proxies: readonly ProxyFacts[];
  manifests: readonly Manifest[];
}

/** Reads every document of a file. Never throws. */
export function readYaml(file: string, read: Read): YamlFile {
  if ('problem' in read) return { file, problems: [read.problem], proxies: [], manifests: [] };
  const documents = parseAllDocuments(read.text);
  const problems: string[] = [];
  const proxies: ProxyFacts[] = [];
  const manifests: Manifest[] = [];
  for (const [index, document] of [...documents].entries()) {
    const where = `${file}: document ${index + 1}`;
    const [error] = document.errors;
    if (error !== undefined) {
      problems.push(`${where}: YAML: ${error.message.split('\n', 1)[0]}`);
      continue;
    }
    const value = valueOf(document);
    const config = readConfigDump(value) ?? readBootstrap(value);
    if (config !== undefined) proxies.push({ name: config.nodeId === '' ? file : config.nodeId, config });
    else manifests.push(...manifestsOf(value, where));
  }
  if (problems.length === 0 && proxies.length === 0 && manifests.length === 0) {
    problems.push(`${file}: expected an Envoy bootstrap with static_resources, or Kubernetes objects`);
  }
  return { file, problems, proxies, manifests };
}

/** A config of thousands of listeners names the block of Sidelight's logs in each; the parser's own limit is 100. */
const mostAliases = 100_000;

/** `undefined`: aliases multiply beyond that. */
function valueOf(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: mostAliases });
  } catch {
    return undefined;
  }
}

function manifestsOf(value: unknown, where: string): Manifest[] {
  if (!isObject(value) || textAt(value, 'kind') === '') return [];
  const kind = textAt(value, 'kind');
  if (kind === 'List') return objectsAt(value, 'items').flatMap((item) => manifestsOf(item, where));
  const namespace = textAt(value, 'metadata', 'namespace');
  const name = `${namespace === '' ? '' : `${namespace}/`}${textAt(value, 'metadata', 'name')}`;
  const snake = snakeCase(value);
  return isObject(snake) ? [{ where: `${where}, ${kind} ${name}`, kind, value: snake }] : [];
}
