import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_REQUEST_METHOD_ORIGINAL,
  ATTR_RPC_METHOD,
  ATTR_RPC_STATUS_CODE,
  ATTR_RPC_SYSTEM_NAME,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_FULL,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions';
import { parseHostPort } from '../../lib/host-port.ts';
import { grpcStatusNames } from '../../model/grpc-status.ts';
import type { SpanFacts } from '../attributes.ts';

/** What OpenTelemetry takes for a method; any other is `_OTHER`, so that a client cannot invent span names. */
const knownMethods = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '));

/** The name of a gRPC status; a number that has none stays a number. `undefined` stays absent. */
export function grpcStatusName(status: number | undefined): string | undefined {
  return status === undefined ? undefined : (grpcStatusNames[status] ?? String(status));
}

export interface RequestFacts {
  method: string | undefined;
  scheme: string | undefined;
  authority: string | undefined;
  path: string | undefined;
  isGrpc: boolean;
}

/** What a request asked for, the same on the exchange's span and on its attempts'. */
export function requestAttributes({ method, scheme, authority, path, isGrpc }: RequestFacts): SpanFacts {
  const urlPath = pathOnly(path);
  const facts: SpanFacts = {
    [ATTR_URL_SCHEME]: scheme,
    [ATTR_URL_PATH]: urlPath,
    ...methodAttributes(method),
    ...serverAttributes(authority),
  };
  if (!isGrpc) return facts;
  return { ...facts, [ATTR_RPC_SYSTEM_NAME]: 'grpc', [ATTR_RPC_METHOD]: urlPath?.slice(1) };
}

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 };

/** What OpenTelemetry wants of a client's span besides. The URL has no query, nor a user's name: an authority has none. */
export function clientAttributes(request: RequestFacts): SpanFacts {
  const { scheme, authority } = request;
  const urlPath = pathOnly(request.path);
  if (scheme === undefined || authority === undefined) return {};
  return {
    [ATTR_SERVER_PORT]: parseHostPort(authority)?.port ?? defaultPorts[scheme],
    [ATTR_URL_FULL]: urlPath === undefined ? undefined : `${scheme}://${authority}${urlPath}`,
  };
}

export function grpcStatusAttributes(isGrpc: boolean, status: number | undefined): SpanFacts {
  return isGrpc ? { [ATTR_RPC_STATUS_CODE]: grpcStatusName(status) } : {};
}

/** Few values: the method, and the route or else the cluster that Envoy's config names. */
export function spanName(method: string | undefined, target: string | undefined): string {
  const verb = method !== undefined && knownMethods.has(method) ? method : 'HTTP';
  return target === undefined ? verb : `${verb} ${target}`;
}

/** A query may hold secrets: it never leaves the proxy's log. */
export function pathOnly(path: string | undefined): string | undefined {
  return path?.split(/[?#]/, 1)[0];
}

function methodAttributes(method: string | undefined): SpanFacts {
  if (method === undefined) return {};
  return knownMethods.has(method)
    ? { [ATTR_HTTP_REQUEST_METHOD]: method }
    : { [ATTR_HTTP_REQUEST_METHOD]: '_OTHER', [ATTR_HTTP_REQUEST_METHOD_ORIGINAL]: method };
}

function serverAttributes(authority: string | undefined): SpanFacts {
  if (authority === undefined) return {};
  const parsed = parseHostPort(authority);
  if (parsed === undefined) return { [ATTR_SERVER_ADDRESS]: authority.replace(/^\[(.*)\]$/, '$1') };
  return { [ATTR_SERVER_ADDRESS]: parsed.host, [ATTR_SERVER_PORT]: parsed.port };
}
