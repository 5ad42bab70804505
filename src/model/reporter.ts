/** What kind of proxy saw the request. One call may be seen by three of them, so every metric names the kind. */
export const reporterKinds = ['sidecar_outbound', 'sidecar_inbound', 'waypoint', 'gateway', 'envoy'] as const;
export type ReporterKind = (typeof reporterKinds)[number];

/** Which parts of Sidelight the attached config feeds. Said by the config, never guessed. */
export const profiles = ['full', 'tag', 'observe'] as const;
export type Profile = (typeof profiles)[number];

/** The proxy that reports. Texts are bounded by `limits.textBytes`; `''` where Envoy's node does not say. */
export interface Reporter {
  kind: ReporterKind;
  workload: string;
  namespace: string;
  pod: string;
  nodeId: string;
  envoyVersion: string;
}
