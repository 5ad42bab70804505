import type { SourceKind } from '../model/view.ts';

/** Endpoints came or went, the first answer not counted. */
export interface EndpointChange {
  cluster: string;
  source: SourceKind;
  /** The proxy whose own list it is; absent where the list is the world's. */
  nodeId?: string;
  added: readonly string[];
  removed: readonly string[];
  /** Epoch ms, our clock. */
  atMs: number;
}

/** What the config says of a cluster. */
export interface ClusterSettings {
  /** The name to ask DNS for; `undefined`: the one in the cluster's name, if there is one. */
  host: string | undefined;
  /** `NAMESPACE/NAME` of the Kubernetes Service behind it; `undefined`: the one in the cluster's name, if there is one. */
  service: string | undefined;
  /** How long after it left an endpoint is only draining; `undefined`: derived. */
  graceMs: number | undefined;
  /** How long an address counts as listed after the last DNS answer that had it, ms; 0: no longer. */
  windowMs: number;
}
