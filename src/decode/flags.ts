import { type ResponseFlag, responseFlags } from '../model/response-flag.ts';

/** The fields of `envoy.data.accesslog.v3.ResponseFlags` (Envoy 1.40). It has none for DO and UDO. */
const flagOfField: Record<string, ResponseFlag> = {
  failedLocalHealthcheck: 'LH',
  noHealthyUpstream: 'UH',
  upstreamRequestTimeout: 'UT',
  localReset: 'LR',
  upstreamRemoteReset: 'UR',
  upstreamConnectionFailure: 'UF',
  upstreamConnectionTermination: 'UC',
  upstreamOverflow: 'UO',
  noRouteFound: 'NR',
  delayInjected: 'DI',
  faultInjected: 'FI',
  rateLimited: 'RL',
  unauthorizedDetails: 'UAEX',
  rateLimitServiceError: 'RLSE',
  downstreamConnectionTermination: 'DC',
  upstreamRetryLimitExceeded: 'URX',
  streamIdleTimeout: 'SI',
  invalidEnvoyRequestHeaders: 'IH',
  downstreamProtocolError: 'DPE',
  upstreamMaxStreamDurationReached: 'UMSDR',
  responseFromCacheFilter: 'RFCF',
  noFilterConfigFound: 'NFCF',
  durationTimeout: 'DT',
  upstreamProtocolError: 'UPE',
  noClusterFound: 'NC',
  overloadManager: 'OM',
  dnsResolutionFailure: 'DF',
  downstreamRemoteReset: 'DR',
};

const none: readonly ResponseFlag[] = [];

/** Flags of a log entry, in the order of their fields. */
export function flagsOfMessage(message: Record<string, boolean | object> | undefined): readonly ResponseFlag[] {
  if (message === undefined) return none;
  return Object.entries(flagOfField).flatMap(([field, flag]) => {
    // UAEX is a message, present or not; the others are booleans.
    const value = message[field];
    return value === undefined || value === false ? [] : [flag];
  });
}

/**
 * Flags of the attribute `response.flags`: bit n is the n-th of Envoy's `CoreResponseFlag`, which is the order of
 * `responseFlags` (envoy/stream_info/stream_info.h, 1.40; test/unit/decode-flags.test.ts). Higher bits are flags of
 * extensions: no name is known for them.
 */
export function flagsOfBits(bits: number | undefined): readonly ResponseFlag[] {
  if (bits === undefined || !(bits > 0)) return none;
  return responseFlags.filter((_, bit) => Math.floor(bits / 2 ** bit) % 2 === 1);
}
