import type { ClosedBy } from '../model/closed-by.ts';
import type { EntryType } from '../model/log-entry.ts';
import type { ResponseFlag } from '../model/response-flag.ts';
import type { WireCommon } from './wire-types.ts';

export interface ConnectionEnd {
  closesConnection: boolean;
  closedBy: ClosedBy | undefined;
}

const staysOpen: ConnectionEnd = { closesConnection: false, closedBy: undefined };
const closed = (closedBy: ClosedBy | undefined): ConnectionEnd => ({ closesConnection: true, closedBy });

/**
 * Whether the upstream connection of an entry was closed with it, and by whom; first match wins.
 *
 * | entry | when | closed by |
 * |---|---|---|
 * | attempt | UC | server |
 * | attempt, HTTP/1 | its response says `connection: close` | server: it wants it so, and Envoy does it |
 * | attempt, HTTP/1 | UPE, not had to its end | not known: it broke off in the body, or wrote what is no HTTP |
 * | attempt, HTTP/1 | not had to its end | envoy: a timeout, a retry, or its client left |
 * | TCP's end | UR: the server's RST, Envoy 1.38 and newer | server |
 * | TCP's end | DT: `max_downstream_connection_duration` | envoy |
 * | TCP's end | otherwise | not known: FIN of either side, the client's RST and the idle timeout look alike |
 *
 * Envoy 1.37, 1.38, 1.40. Its formatters for the side that closed exist from 1.38 on and say `Normal` on both sides for
 * a FIN of either. test/unit/decode-connection-end.test.ts.
 */
export function connectionEnd(
  type: EntryType,
  flags: readonly ResponseFlag[],
  connectionId: string | undefined,
  common: WireCommon,
): ConnectionEnd {
  if (connectionId === undefined) return staysOpen;
  if (type === 'tcp_connection_end') return closed(tcpCloser(flags));
  if (type !== 'upstream_end') return staysOpen;
  if (flags.includes('UC')) return closed('server');
  // Streams of HTTP/2 and 3 come and go without their connection. Without the tag (config version 1) it is not known.
  if (common.customTags?.['upstream_protocol']?.startsWith('HTTP/1') !== true) return staysOpen;
  if (saysClose(common.customTags?.['response_connection'])) return closed('server');
  if (isWhole(common)) return staysOpen;
  return closed(flags.includes('UPE') ? undefined : 'envoy');
}

function tcpCloser(flags: readonly ResponseFlag[]): ClosedBy | undefined {
  if (flags.includes('UR')) return 'server';
  return flags.includes('DT') ? 'envoy' : undefined;
}

function saysClose(header: string | undefined): boolean {
  return header !== undefined && /(?:^|,)\s*close\s*(?:,|$)/i.test(header);
}

/** Request and response went over to their last byte: only then can an HTTP/1 connection serve another request. */
function isWhole({ timeToLastUpstreamTxByte, timeToLastUpstreamRxByte }: WireCommon): boolean {
  return timeToLastUpstreamTxByte !== undefined && timeToLastUpstreamRxByte !== undefined;
}
