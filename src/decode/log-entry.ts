import type { EntryType, LogEntry } from '../model/log-entry.ts';
import { clientOfAddress, upstreamOfAddress } from './address.ts';
import { connectionEnd } from './connection-end.ts';
import { entryTags } from './entry-tags.ts';
import { flagsOfMessage } from './flags.ts';
import { idText, labelText, sameCluster } from './text.ts';
import { countText, plausibleMs, wireDurationMs, wireMs } from './time.ts';
import type { WireCommon, WireHttpEntry, WireTcpEntry } from './wire-types.ts';

/** `AccessLogType` by number; higher ones (UDP, tunnels) are not read. */
const typeOfNumber: readonly EntryType[] = [
  'not_set',
  'tcp_upstream_connected',
  'tcp_periodic',
  'tcp_connection_end',
  'downstream_start',
  'downstream_periodic',
  'downstream_end',
  'upstream_pool_ready',
  'upstream_periodic',
  'upstream_end',
];

/** `RequestMethod` by number; 0 is a method that the enum does not know. */
const methodOfNumber = [undefined, 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];

/** `HTTPVersion` by number, as Envoy's `%PROTOCOL%` prints it. */
const protocolOfNumber = [undefined, 'HTTP/1.0', 'HTTP/1.1', 'HTTP/2', 'HTTP/3'];

/**
 * An HTTP entry. Its bytes are body bytes, received from and sent to the entry's own peer: the client downstream, the
 * endpoint upstream (Envoy 1.40 writes what came from the endpoint as `request_body_bytes`).
 */
export function httpEntry(entry: WireHttpEntry, maxTextBytes: number): LogEntry {
  const { request, response } = entry;
  const common = entry.commonProperties ?? {};
  const text = (value: string | undefined): string | undefined => labelText(value, maxTextBytes);
  return {
    layer: 'http',
    key: idText(common.customTags?.['key']),
    ...commonFields(common, maxTextBytes),
    code: response?.responseCode?.value || undefined,
    codeDetails: text(response?.responseCodeDetails),
    bytesSent: response?.responseBodyBytes ?? 0,
    bytesReceived: request?.requestBodyBytes ?? 0,
    method: methodOfNumber[request?.requestMethod ?? 0],
    scheme: text(request?.scheme),
    authority: text(request?.authority),
    path: text(request?.path),
    protocol: protocolOfNumber[entry.protocolVersion ?? 0],
    requestId: text(request?.requestId),
  };
}

/** An entry of a TCP-proxied connection; what belongs to HTTP is absent. Its bytes are the client's. */
export function tcpEntry(entry: WireTcpEntry, maxTextBytes: number): LogEntry {
  const common = entry.commonProperties ?? {};
  return {
    layer: 'tcp',
    key: idText(common.streamId),
    ...commonFields(common, maxTextBytes),
    code: undefined,
    codeDetails: undefined,
    bytesSent: entry.connectionProperties?.sentBytes ?? 0,
    bytesReceived: entry.connectionProperties?.receivedBytes ?? 0,
    method: undefined,
    scheme: undefined,
    authority: undefined,
    path: undefined,
    protocol: undefined,
    requestId: undefined,
  };
}

function commonFields(common: WireCommon, maxTextBytes: number) {
  const text = (value: string | undefined): string | undefined => labelText(value, maxTextBytes);
  const downstream = common.downstreamRemoteAddress ?? common.downstreamDirectRemoteAddress;
  const type = typeOfNumber[common.accessLogType ?? 0] ?? 'not_set';
  const flags = flagsOfMessage(common.responseFlags);
  const tags = entryTags(common);
  return {
    type,
    startMs: wireMs(common.startTime),
    durationMs: durationMs(common),
    firstUpstreamTxMs: wireDurationMs(common.timeToFirstUpstreamTxByte),
    firstUpstreamRxMs: wireDurationMs(common.timeToFirstUpstreamRxByte),
    // The field is there with a host only (Envoy 1.40, test/e2e/pins.test.ts): the tag tells where there was none.
    cluster: sameCluster(text(common.upstreamCluster) ?? text(common.customTags?.['cluster'])),
    route: text(common.routeName),
    upstream: upstreamOfAddress(common.upstreamRemoteAddress),
    downstreamRemote: clientOfAddress(downstream),
    flags,
    transportFailure: text(common.upstreamTransportFailureReason),
    attemptCount: attemptCount(type, common.upstreamRequestAttemptCount ?? 0),
    ...connectionEnd(type, flags, tags.connectionId, common),
    tags,
  };
}

/**
 * The field `duration` is there at the end only: while a TCP connection lives its age comes in the tag `duration_ms`
 * (`%DURATION%`). Envoy 1.40, test/unit/decode-fixtures.test.ts.
 */
function durationMs(common: WireCommon): number | undefined {
  return wireDurationMs(common.duration) ?? plausibleMs(countText(common.customTags?.['duration_ms']));
}

/** Upstream entries never carry a count; elsewhere an absent one is 0: no attempt was made. */
function attemptCount(type: EntryType, count: number): number | undefined {
  const ofUpstream = type === 'upstream_pool_ready' || type === 'upstream_periodic' || type === 'upstream_end';
  return ofUpstream || type === 'not_set' ? count || undefined : count;
}
