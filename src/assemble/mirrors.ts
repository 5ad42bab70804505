import type { LogEntry } from '../model/log-entry.ts';

/*
 * A mirrored (shadow) request is logged under the same key as the real one. From Envoy 1.38 on it is known by having no
 * downstream address, which every real attempt has (test/e2e/flags.test.ts). Envoy 1.37 gives that address to neither;
 * there a mirror is known, once the end is, by its cluster (test/fixtures/envoy-1.37).
 */

/** Whether an attempt's entry is a mirror's; `false` where its Envoy is too old to tell by the entry alone. */
export function isMirror(entry: LogEntry, envoyVersion: string): boolean {
  return entry.downstreamRemote === undefined && !omitsClients(envoyVersion);
}

/** Of an old Envoy's attempts, those whose cluster an end names. Without an end all of them. */
export function withoutMirrors(
  tries: readonly LogEntry[],
  ends: readonly LogEntry[],
  envoyVersion: string,
): LogEntry[] {
  const clusters = new Set(ends.map((end) => end.cluster));
  if (!omitsClients(envoyVersion) || clusters.size === 0) return [...tries];
  return tries.filter((entry) => entry.cluster === undefined || clusters.has(entry.cluster));
}

/** No Envoy before 1.37 can be attached. `envoyVersion`: `1.37.2`; `''` (not said) counts as new. */
function omitsClients(envoyVersion: string): boolean {
  return envoyVersion.startsWith('1.37.');
}
