import { catalogue, type FindingId, type Severity } from './catalogue.ts';

/** One fault that was found. */
export interface Finding {
  id: FindingId;
  severity: Severity;
  /** Its node id, else where its facts came from; `''`: it is about files, or about several proxies. */
  proxy: string;
  /** Each listener, filter chain and filter, or document, where it was seen. */
  where: readonly string[];
  /** The very value or counter that was seen. */
  evidence: string;
  /** What to do. */
  remedy: string;
  /** The page that explains it. */
  page: string;
}

/** What is known of a fault where it is seen. */
export interface Seen {
  where: string;
  evidence: string;
  /** Replaces the catalogue's. */
  remedy?: string;
}

/** A fault in one place, without its proxy, which the caller knows. */
export interface ProxyFinding extends Omit<Finding, 'proxy' | 'where'> {
  where: string;
}

/** What is longer is cut, characters: a config can hold anything. */
const longestEvidence = 600;

export function finding(id: FindingId, { where, evidence, remedy }: Seen): ProxyFinding {
  const { severity, remedy: usual } = catalogue[id];
  const shown = evidence.length > longestEvidence ? `${evidence.slice(0, longestEvidence)}…` : evidence;
  return { id, severity, where, evidence: shown, remedy: remedy ?? usual, page: `docs/doctor/${id}.md` };
}

/** Nothing, or one fault. */
export function findingIf(is: boolean, id: FindingId, seen: Seen): ProxyFinding[] {
  return is ? [finding(id, seen)] : [];
}

/** What is the same in many places is one finding: a patch lands in every listener. */
export function joined(proxy: string, findings: readonly ProxyFinding[]): Finding[] {
  const groups = Map.groupBy(findings, ({ id, evidence, remedy }) => JSON.stringify([id, evidence, remedy]));
  return Array.from(groups.values()).flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [{ ...first, proxy, where: [...new Set(group.map(({ where }) => where))] }];
  });
}
