import { expect, test } from 'vitest';
import { flagsOfBits, flagsOfMessage } from '../../src/decode/flags.ts';

// Source of order and names: CoreResponseFlag in envoy/stream_info/stream_info.h, ResponseFlags in accesslog.proto (1.40).
const flags: [bit: number, name: string, field: string | undefined][] = [
  [0, 'LH', 'failedLocalHealthcheck'],
  [1, 'UH', 'noHealthyUpstream'],
  [2, 'UT', 'upstreamRequestTimeout'],
  [3, 'LR', 'localReset'],
  [4, 'UR', 'upstreamRemoteReset'],
  [5, 'UF', 'upstreamConnectionFailure'],
  [6, 'UC', 'upstreamConnectionTermination'],
  [7, 'UO', 'upstreamOverflow'],
  [8, 'NR', 'noRouteFound'],
  [9, 'DI', 'delayInjected'],
  [10, 'FI', 'faultInjected'],
  [11, 'RL', 'rateLimited'],
  [12, 'UAEX', 'unauthorizedDetails'],
  [13, 'RLSE', 'rateLimitServiceError'],
  [14, 'DC', 'downstreamConnectionTermination'],
  [15, 'URX', 'upstreamRetryLimitExceeded'],
  [16, 'SI', 'streamIdleTimeout'],
  [17, 'IH', 'invalidEnvoyRequestHeaders'],
  [18, 'DPE', 'downstreamProtocolError'],
  [19, 'UMSDR', 'upstreamMaxStreamDurationReached'],
  [20, 'RFCF', 'responseFromCacheFilter'],
  [21, 'NFCF', 'noFilterConfigFound'],
  [22, 'DT', 'durationTimeout'],
  [23, 'UPE', 'upstreamProtocolError'],
  [24, 'NC', 'noClusterFound'],
  [25, 'OM', 'overloadManager'],
  [26, 'DF', 'dnsResolutionFailure'],
  [27, 'DO', undefined],
  [28, 'DR', 'downstreamRemoteReset'],
  [29, 'UDO', undefined],
];

test.each(flags)('bit %i of response.flags is %s', (bit, name) => {
  expect(flagsOfBits(2 ** bit)).toEqual([name]);
});

test.each(flags.filter(([, , field]) => field !== undefined))('bit %i, %s, is the field %s', (_, name, field = '') => {
  expect(flagsOfMessage({ [field]: field === 'unauthorizedDetails' ? {} : true })).toEqual([name]);
});

test('two flags at once are both read', () => {
  expect(flagsOfBits(32 + 32_768)).toEqual(['UF', 'URX']);
  expect(flagsOfMessage({ upstreamConnectionFailure: true, upstreamRetryLimitExceeded: true })).toEqual(['UF', 'URX']);
});

test.each([[undefined], [0], [-1], [Number.NaN], [2 ** 40]])('bits %j are no flag that has a name', (bits) => {
  expect(flagsOfBits(bits)).toEqual([]);
});

test('a flag that is false, an unknown field and no message at all are no flags', () => {
  expect(flagsOfMessage({ localReset: false, somethingNew: true })).toEqual([]);
  expect(flagsOfMessage(undefined)).toEqual([]);
});
