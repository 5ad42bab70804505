import { addressText } from '../address.ts';
import type { HostFacts, StatsFacts } from '../facts.ts';
import { at, isObject, numberAt, objectAt, objectsAt, textAt } from '../json.ts';

/** Of what never moved a whole answer has plenty; with `usedonly` hardly anything stands at 0. */
const leastZeros = 0.2;

/** Reads what `/stats` answers, as text or with `format=json`; `undefined`: it is neither. */
export function readStats(text: string): StatsFacts | undefined {
  const values = text.trimStart().startsWith('{') ? statsOfJson(text) : statsOfText(text);
  if (values === undefined || values.size === 0) return undefined;
  const zeros = [...values.values()].filter((value) => value === 0).length;
  return { values, isWhole: zeros >= values.size * leastZeros };
}

function statsOfJson(text: string): Map<string, number> | undefined {
  const parsed = parseJson(text);
  if (!Array.isArray(at(parsed, 'stats'))) return undefined;
  const named = objectsAt(parsed, 'stats').filter(({ name, value }) => typeof name === 'string' && isNumeric(value));
  return new Map(named.map((stat) => [textAt(stat, 'name'), numberAt(stat, 'value')]));
}

function statsOfText(text: string): Map<string, number> {
  // A cluster's name may hold a colon; Envoy writes the value after the last one. Histograms are no number.
  const lines = text.split('\n').map((line) => /^(\S.*): (\d+)\s*$/.exec(line));
  return new Map(lines.flatMap((found) => (found === null ? [] : [[found[1] ?? '', Number(found[2])] as const])));
}

function isNumeric(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'string';
}

/** Reads what `/clusters?format=json` answers; `undefined`: it is something else. */
export function readClusters(text: string): Map<string, HostFacts[]> | undefined {
  const parsed = parseJson(text);
  if (!isObject(parsed) || !Array.isArray(parsed['cluster_statuses'])) return undefined;
  return new Map(
    objectsAt(parsed, 'cluster_statuses').map((status) => [
      textAt(status, 'name'),
      objectsAt(status, 'host_statuses').map((host) => ({
        address: addressText(host['address']),
        healthy: isHealthy(objectAt(host, 'health_status')),
        stats: new Map(objectsAt(host, 'stats').map((stat) => [textAt(stat, 'name'), numberAt(stat, 'value')])),
      })),
    ]),
  );
}

function isHealthy({ failed_active_health_check: failed, eds_health_status: eds }: Record<string, unknown>): boolean {
  return failed !== true && (eds === undefined || eds === 'HEALTHY' || eds === 'UNKNOWN' || eds === 'DEGRADED');
}

/** Reads what `/runtime` answers; `undefined`: it is something else. */
export function readRuntime(text: string): Map<string, string> | undefined {
  const parsed = parseJson(text);
  if (!isObject(parsed) || !isObject(parsed['entries'])) return undefined;
  return new Map(Object.entries(parsed['entries']).map(([key, entry]) => [key, textAt(entry, 'final_value')]));
}

/** Reads the version out of what `/server_info` answers; `undefined`: it is something else. */
export function readServerVersion(text: string): string | undefined {
  // COMMIT/1.40.0/Clean/RELEASE/BoringSSL; Istio's own build says 1.31.0-COMMIT/1.38.1/…
  return /\/(\d+\.\d+\.\d+)[^/]*\//.exec(textAt(parseJson(text), 'version'))?.[1];
}

/** A JSON text as a value; `undefined`: it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
