import { LRUCache } from 'lru-cache';
import { grpcStatusNumbers } from './grpc-status.ts';
import type { Config } from './schema.ts';

/** What the config says of one cluster, the general settings filled in. */
export interface ClusterRule {
  /** The name to ask DNS for; `undefined`: the config names none. */
  host: string | undefined;
  /** `NAMESPACE/NAME` of a Kubernetes Service; `undefined`: the config names none. */
  service: string | undefined;
  /** `undefined`: derived from TTL and refresh. */
  graceMs: number | undefined;
  /** How long an address counts as listed after the last DNS answer that had it. */
  windowMs: number;
  /** After which the proxy closes an unused connection, 0: never; `undefined`: as the proxy says, or `defaultIdleTimeoutMs`. */
  idleTimeoutMs: number | undefined;
  /** Pins are wanted here. */
  expectPin: boolean;
  slowMs: number;
  success: { httpFailFrom: number; grpcFail: ReadonlySet<number> };
}

type ClusterEntry = Config['clusters'][number];

/** A lookup by cluster name; the first entry that matches wins. Remembers as many answers as `limits.clusters`. */
export function createClusterRules(config: Config): (cluster: string) => ClusterRule {
  const general = ruleOf(undefined, config);
  const entries = config.clusters.map((entry) => ({ matches: wildcard(entry.match), rule: ruleOf(entry, config) }));
  if (entries.length === 0) return () => general;
  const known = new LRUCache<string, ClusterRule>({ max: config.limits.clusters });
  return (cluster) => {
    const found = known.get(cluster);
    if (found) return found;
    const rule = entries.find(({ matches }) => matches(cluster))?.rule ?? general;
    known.set(cluster, rule);
    return rule;
  };
}

function ruleOf(entry: ClusterEntry | undefined, { success, traces }: Config): ClusterRule {
  return {
    host: entry?.host,
    service: entry?.service,
    graceMs: entry?.graceMs,
    windowMs: entry?.windowMs ?? 0,
    idleTimeoutMs: entry?.idleTimeoutMs,
    expectPin: entry?.expectPin ?? false,
    slowMs: entry?.slowMs ?? traces.slowMs,
    success: {
      httpFailFrom: entry?.success?.httpFailFrom ?? success.httpFailFrom,
      grpcFail: grpcStatusNumbers(entry?.success?.grpcFail ?? success.grpcFail),
    },
  };
}

/** `*` stands for any text, also none; all else stands for itself. Linear in the text, whatever the pattern. */
function wildcard(pattern: string): (text: string) => boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return (text) => text === pattern;
  return (text) => {
    if (!text.startsWith(head) || !text.endsWith(tail)) return false;
    let from = head.length;
    for (const part of rest) {
      const found = text.indexOf(part, from);
      if (found < 0) return false;
      from = found + part.length;
    }
    return from <= text.length - tail.length;
  };
}
