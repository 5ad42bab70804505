import type { LogEntry } from '../../src/model/log-entry.ts';
import type { Reporter } from '../../src/model/reporter.ts';

export const reporter: Reporter = {
  kind: 'envoy',
  workload: 'shop',
  namespace: 'default',
  pod: 'shop-1',
  nodeId: 'shop-1.default',
  envoyVersion: '1.40.0',
};

const blank: LogEntry = {
  layer: 'http',
  type: 'not_set',
  key: 'k1',
  startMs: 1000,
  durationMs: 10,
  firstUpstreamTxMs: 1,
  firstUpstreamRxMs: 9,
  cluster: 'app',
  route: undefined,
  upstream: undefined,
  downstreamRemote: endpoint('127.0.0.1:50000'),
  flags: [],
  code: 200,
  codeDetails: undefined,
  transportFailure: undefined,
  closesConnection: false,
  closedBy: undefined,
  attemptCount: undefined,
  bytesSent: 0,
  bytesReceived: 0,
  method: 'GET',
  scheme: 'http',
  authority: 'shop.test',
  path: '/',
  protocol: 'HTTP/1.1',
  requestId: 'r1',
  tags: {
    connectionId: undefined,
    connectionAgeMs: undefined,
    traceparent: undefined,
    envoyTraceId: undefined,
    envoySpanId: undefined,
    grpcStatus: undefined,
    isGrpc: false,
    attemptCountHeader: undefined,
    injected: undefined,
  },
};

type Overrides = Partial<Omit<LogEntry, 'tags'>> & { tags?: Partial<LogEntry['tags']> };

/** The entry of one attempt: a 200 from 127.0.0.11:8080 over connection 7, unless told otherwise. */
export function upstreamEnd(overrides: Overrides = {}): LogEntry {
  return entry({ type: 'upstream_end', upstream: endpoint('127.0.0.11:8080'), ...overrides });
}

/** A request's end: a delivered 200 from 127.0.0.11:8080 over connection 7 after one attempt, unless told otherwise. */
export function downstreamEnd(overrides: Overrides = {}): LogEntry {
  const end = { upstream: endpoint('127.0.0.11:8080'), codeDetails: 'via_upstream', attemptCount: 1 };
  return entry({ type: 'downstream_end', ...end, ...overrides });
}

export function endpoint(text: string): NonNullable<LogEntry['upstream']> {
  const colon = text.lastIndexOf(':');
  return { text, kind: 'ip', ip: text.slice(0, colon), port: Number(text.slice(colon + 1)) };
}

/** An HBONE endpoint, as a waypoint has it. */
export function tunnelled(text: string): NonNullable<LogEntry['upstream']> {
  return { ...endpoint(text), text: `envoy://connect_originate/${text}`, kind: 'internal' };
}

function entry(overrides: Overrides): LogEntry {
  return {
    ...blank,
    ...overrides,
    tags: { ...blank.tags, connectionId: '7', connectionAgeMs: 500, ...overrides.tags },
  };
}
