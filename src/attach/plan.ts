import type { Profile } from '../model/reporter.ts';

/** Which side of which proxy. A sidecar has two: what its app calls, and who calls its app. */
export const istioTargets = ['sidecar-outbound', 'sidecar-inbound', 'waypoint', 'gateway'] as const;
export type IstioTarget = (typeof istioTargets)[number];

/** Where the proxies find Sidelight. */
export type SidelightPlace =
  /** By a cluster of the mesh's own: with its mTLS, known where the mesh lets the proxy know the Service. */
  | { kind: 'service'; name: string; namespace: string; port: number }
  /** By a cluster of ours, without TLS: a DNS name is asked for again and again, an IP stays. */
  | { kind: 'address'; host: string; port: number }
  /** By a unix socket that the proxy's container can open. */
  | { kind: 'uds'; path: string };

/** Which proxies of the target's kind. */
export type Scope =
  /** All; the EnvoyFilter lives in the root namespace. */
  | { kind: 'mesh' }
  | { kind: 'namespace' }
  /** Pods with all of these labels; not of a waypoint. */
  | { kind: 'workload'; labels: Readonly<Record<string, string>> }
  /** One Gateway of the Kubernetes Gateway API: a waypoint, or a gateway. */
  | { kind: 'gateway'; name: string };

/** What is attached, wherever. */
export interface AttachPlan {
  profile: Profile;
  /** Profiles `full` and `tag`: put a `traceparent` into the request, so that the upstream's spans are ours' children. */
  inject: boolean;
  /**
   * Which share of the requests is tagged, in percent, and the two runtime keys by which Envoy can be told otherwise.
   * `undefined`: all are, and there are no keys.
   */
  samplePercent: number | undefined;
  /** Envoy waits no longer for a tag, ms. */
  messageTimeoutMs: number;
  place: SidelightPlace;
  /** How many proxies will check Sidelight's health: more of them check less often. */
  proxies: number;
}

/** An EnvoyFilter. */
export interface IstioPlan extends AttachPlan {
  target: IstioTarget;
  /** Of the EnvoyFilter. */
  namespace: string;
  scope: Scope;
  /** Only this port: of the Service on the outbound side, of the container on the inbound side. */
  port: number | undefined;
  /** A waypoint's: only this Service, by its full name and port. */
  onlyService: { host: string; port: number } | undefined;
  /** Also the connections that the proxy does not read as HTTP; never in profile `tag`. */
  tcp: boolean;
  /** The 31 of Istio 1.31. Absent: not said, and only what each of them takes is written. */
  istioMinor: number | undefined;
}

/** Envoy takes formatters in a log's `custom_tags` from 1.37 on, which Istio carries from this minor on: 1.29. */
export const firstIstioThatLogs = 29;
/** With this one, 1.30, comes Envoy 1.38, which knows `%SPAN_ID%` in a log. */
export const firstIstioWithSpanId = 30;
/** Older Istios were not looked at. */
export const firstIstioKnown = 28;
