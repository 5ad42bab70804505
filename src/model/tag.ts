import type { Endpoint } from './endpoint.ts';
import type { InjectedContext } from './log-entry.ts';
import type { Profile, Reporter } from './reporter.ts';
import type { ResponseFlag } from './response-flag.ts';
import type { Pin } from './verdict.ts';

/** What ext_proc tells at the request headers, which are sent in `inject` mode only. */
export interface RequestFacts {
  profile: Profile;
  /** What the caller sent, valid or not. */
  traceparent: string | undefined;
}

/** What ext_proc tells at the response headers, all of it about the last attempt. `undefined`: Envoy did not say. */
export interface ResponseFacts {
  profile: Profile;
  reporter: Reporter;
  key: string | undefined;
  cluster: string | undefined;
  route: string | undefined;
  upstream: Endpoint | undefined;
  /** Envoy's count less a last try that reached nobody: 1 without a retry, 0 for a local reply. */
  attemptCount: number | undefined;
  code: number | undefined;
  codeDetails: string | undefined;
  flags: readonly ResponseFlag[];
  /** Epoch ms, Envoy's clock. */
  requestStartMs: number | undefined;
  connectionId: string | undefined;
  connectionAgeMs: number | undefined;
  method: string | undefined;
  path: string | undefined;
  authority: string | undefined;
  traceparent: string | undefined;
  /** What the client sent in `x-sidelight-debug`: compared with the configured secret. */
  debugSecret: string | undefined;
  /** What the tagger put in at the request headers of the same request. */
  injected: InjectedContext | undefined;
}

/** What the tagger writes into dynamic metadata `sidelight`, and into `x-sidelight-*` headers where asked for. */
export interface Tags {
  cluster: string | undefined;
  endpoint: string | undefined;
  /** As Envoy counted them; the recorder's own count decides. */
  attempts: number | undefined;
  retried: boolean;
  connectionId: string | undefined;
  connectionAgeMs: number | undefined;
  pin: Pin;
  profile: Profile;
}
