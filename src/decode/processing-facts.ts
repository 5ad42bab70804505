import { isSilentTunnel } from '../model/endpoint.ts';
import type { InjectedContext } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import type { RequestFacts, ResponseFacts } from '../model/tag.ts';
import { upstreamOfText } from './address.ts';
import { upstreamConnectionId } from './entry-tags.ts';
import { flagsOfBits } from './flags.ts';
import type { ProcessingMessage } from './processing-request.ts';
import { reporterOf, reporterOfFacts } from './reporter.ts';
import { numberValue, textValue } from './struct.ts';
import { idText, labelText, sameCluster } from './text.ts';
import { microsTextMs, timestampTextMs } from './time.ts';

/** `xds.listener_direction`: `envoy.config.core.v3.TrafficDirection.INBOUND`. */
const inbound = 1;

/** What the request phase tells, of `inject` mode. */
export function requestFacts(message: ProcessingMessage, profile: Profile): RequestFacts {
  return { profile, traceparent: requestHeader(message, 'traceparent') };
}

/** What the response phase tells. `injected`: what the request phase of the same stream put in. */
export function responseFacts(
  message: ProcessingMessage,
  profile: Profile,
  injected: InjectedContext | undefined,
  maxTextBytes: number,
): ResponseFacts {
  const { attributes } = message;
  const text = (name: string): string | undefined => labelText(textValue(attributes, name), maxTextBytes);
  const cluster = sameCluster(text('xds.cluster_name'));
  const codeDetails = text('response.code_details');
  const { upstream, attemptCount } = reached(message, codeDetails);
  const isOwnReply = codeDetails !== undefined && codeDetails !== 'via_upstream';
  const isSilent = upstream !== undefined && isOwnReply && isSilentTunnel(upstream, undefined);
  return {
    profile,
    reporter: reporter(message, cluster, maxTextBytes),
    key: requestHeader(message, 'x-sidelight-key'),
    cluster,
    route: text('xds.route_name'),
    upstream,
    attemptCount,
    code: numberValue(attributes, 'response.code') || undefined,
    codeDetails,
    flags: flagsOfBits(numberValue(attributes, 'response.flags')),
    requestStartMs: timestampTextMs(textValue(attributes, 'request.time') ?? ''),
    ...(isSilent ? noConnection : connection(message)),
    method: text('request.method'),
    // Without the query; configs of version 1 and 2 asked for it with the query.
    path: text('request.url_path') ?? text('request.path'),
    authority: text('request.host'),
    traceparent: requestHeader(message, 'traceparent'),
    debugSecret: requestHeader(message, 'x-sidelight-debug'),
    injected,
  };
}

const noConnection = { connectionId: undefined, connectionAgeMs: undefined };

function connection(message: ProcessingMessage): Pick<ResponseFacts, 'connectionId' | 'connectionAgeMs'> {
  return {
    connectionId: upstreamConnectionId(responseHeader(message, 'x-sidelight-internal-connection-id')),
    connectionAgeMs: microsTextMs(responseHeader(message, 'x-sidelight-internal-connection-age-us')),
  };
}

/** Details of Envoy's own reply after a try that found no host, or no room in the pool. */
const nobodyReached = /^(?:no_healthy_upstream|upstream_reset_before_response_started\{overflow\b)/;

/**
 * Envoy counts a last try that reached nobody, and may name the host that it chose for it; what came before it stands.
 * Envoy 1.40, test/e2e/tags.test.ts.
 */
function reached(
  { attributes }: ProcessingMessage,
  codeDetails: string | undefined,
): Pick<ResponseFacts, 'upstream' | 'attemptCount'> {
  const upstream = upstreamOfText(textValue(attributes, 'upstream.address') ?? '');
  const count = numberValue(attributes, 'upstream.request_attempt_count');
  if (!count || codeDetails === undefined || !nobodyReached.test(codeDetails)) return { upstream, attemptCount: count };
  return { upstream: count === 1 ? undefined : upstream, attemptCount: count - 1 };
}

/** The node's metadata is not on this stream: its workload is known where the config asks for it by attribute. */
function reporter({ attributes }: ProcessingMessage, cluster: string | undefined, maxTextBytes: number): Reporter {
  const base = reporterOfFacts(
    {
      id: textValue(attributes, 'xds.node.id'),
      cluster: textValue(attributes, 'xds.node.cluster'),
      workload: textValue(attributes, "xds.node.metadata['WORKLOAD_NAME']"),
    },
    maxTextBytes,
  );
  const direction = numberValue(attributes, 'xds.listener_direction');
  return reporterOf(base, direction === inbound ? 'inbound|' : cluster);
}

/** A request header: asked for as an attribute in the response phase, forwarded as a header in the request phase. */
function requestHeader({ kind, attributes, headers }: ProcessingMessage, name: string): string | undefined {
  const attribute = textValue(attributes, `request.headers['${name}']`);
  return idText(attribute ?? (kind === 'requestHeaders' ? headers.get(name) : undefined));
}

/** A response header: forwarded as a header, or asked for as an attribute. */
function responseHeader({ attributes, headers }: ProcessingMessage, name: string): string | undefined {
  return idText(headers.get(name) ?? textValue(attributes, `response.headers['${name}']`));
}
