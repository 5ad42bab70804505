import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EndpointReport, EndpointsAnswer, Holder } from '../../src/model/endpoint-report.ts';
import type { Profile, Reporter } from '../../src/model/reporter.ts';

export const oldEndpoint = '10.0.0.7:8080';

/** Times of the builders below are ages, ms: `-5000` is five seconds ago, on whichever clock. */
export const shop: Reporter = {
  kind: 'sidecar_outbound',
  workload: 'shop',
  namespace: 'web',
  pod: 'shop-1',
  nodeId: 'sidecar~10.1.1.1~shop-1.web',
  envoyVersion: '1.40.0',
};
export const cart: Reporter = { ...shop, workload: 'cart', pod: 'cart-1', nodeId: 'sidecar~10.1.1.2~cart-1.web' };

export function holder(over: Partial<Holder> = {}): Holder {
  return {
    reporter: shop,
    layer: 'http',
    connectionId: '41',
    state: 'idle',
    pin: 'stale',
    reason: undefined,
    openedMs: -600_000,
    lastUsedMs: -100_000,
    mayBeOpenUntilMs: 3_500_000,
    requests: 12,
    bytes: 3400,
    reporterConnected: true,
    advice: undefined,
    ...over,
  };
}

/** One that left five minutes ago and was last used a minute and a half ago. */
export function leftEndpoint(over: Partial<EndpointReport> = {}): EndpointReport {
  const { holders = [] } = over;
  const count = (state: Holder['state']) => holders.filter((one) => one.state === state).length;
  return {
    cluster: 'payments',
    endpoint: oldEndpoint,
    state: 'left',
    reason: undefined,
    source: 'dns',
    subject: 'pay.example.com',
    listedSinceMs: undefined,
    listedBy: [],
    leftAtMs: -300_000,
    graceMs: 10_000,
    requests: 0,
    share: undefined,
    fairShare: undefined,
    lastUsedMs: -90_000,
    connections: { open: count('open'), idle: count('idle'), unseen: count('unseen') },
    forgotten: undefined,
    holders,
    drain: {
      requests: 7,
      bytes: 2100,
      lastUsedMs: -90_000,
      bucketMs: 1000,
      points: [],
      reporters: [{ reporter: shop, requests: 7, bytes: 2100, lastUsedMs: -90_000, bucketMs: 1000, points: [] }],
    },
    ...over,
  };
}

export interface FakeReporter {
  reporter: Reporter;
  profile?: Profile;
  configVersion?: number;
  streams?: number;
  lastEntryMs?: number;
}

export interface FakeCluster {
  cluster: string;
  subject: string;
  stale?: boolean;
  lastError?: string;
}

export interface FakeClosed {
  reporter?: Reporter;
  connectionId: string;
  openedMs: number;
  clearedMs: number;
  how?: string;
}

/** What a fake replica says at a moment; everything may be changed while it runs. */
export interface Script {
  /** How far its clock is ahead of ours, ms. */
  skewMs: number;
  /** Its age, ms; the same process as long as this and `skewMs` stay. */
  upForMs: number;
  truncated: boolean;
  /** It has more reporters than it lists. */
  moreReporters: boolean;
  endpoints: readonly EndpointReport[];
  reporters: readonly FakeReporter[];
  /** Pods that should report; absent: nobody said who should. */
  expected?: { missing: readonly { namespace: string; pod: string }[]; stale?: boolean; lastError?: string };
  clusters: readonly FakeCluster[];
  closed: readonly FakeClosed[];
  /** Instead of a good answer to everything. */
  instead?: (response: ServerResponse) => void;
}

export interface FakeReplica {
  url: string;
  port: number;
  script: Script;
  /** Paths and queries that were asked for. */
  asked: string[];
  close(): Promise<void>;
}

/** Sidelight's API on real HTTP, saying what the script says. */
export async function startFakeReplica(over: Partial<Script> = {}, host = '127.0.0.1', port = 0): Promise<FakeReplica> {
  const script: Script = {
    skewMs: 0,
    upForMs: 86_400_000,
    truncated: false,
    moreReporters: false,
    endpoints: [leftEndpoint()],
    reporters: [{ reporter: shop }],
    clusters: [{ cluster: 'payments', subject: 'pay.example.com' }],
    closed: [],
    ...over,
  };
  const bornMs = Date.now();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { url = '' } = request;
    asked.push(url);
    if (script.instead !== undefined) return script.instead(response);
    const body = answerTo(url.split('?')[0] ?? '', script, bornMs);
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    return response.end(JSON.stringify(body ?? { error: 'not_found' }));
  });
  server.listen(port, host);
  await once(server, 'listening');
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    script,
    asked,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answerTo(path: string, script: Script, bornMs: number): object | undefined {
  const nowMs = Date.now() + script.skewMs;
  const at = (ageMs: number | undefined) => (ageMs === undefined ? undefined : nowMs + ageMs);
  switch (path) {
    case '/api/v1/endpoints': {
      const startedMs = bornMs + script.skewMs - script.upForMs;
      const endpoints = script.endpoints.map((one) => dated(one, at));
      return { nowMs, startedMs, windowMs: 300_000, truncated: script.truncated, endpoints } satisfies EndpointsAnswer;
    }
    case '/api/v1/reporters':
      return {
        nowMs,
        truncated: script.moreReporters,
        expected: script.expected && { subject: 'pods of web', stale: false, truncated: false, ...script.expected },
        reporters: script.reporters.map(
          ({ reporter, profile = 'observe', configVersion = 2, streams = 1, lastEntryMs = -1000 }) => ({
            ...reporter,
            profile,
            configVersion,
            streams,
            firstSeenMs: nowMs - 3_600_000,
            lastEntryMs: nowMs + lastEntryMs,
            silentMs: -lastEntryMs,
          }),
        ),
      };
    case '/api/v1/clusters':
      return { nowMs, clusters: script.clusters.map((one) => ({ source: 'dns', stale: false, ...one })) };
    case '/api/v1/pins': {
      const where = { cluster: 'payments', endpoint: oldEndpoint, reporter: shop };
      const cleared = script.closed.map((one) => ({
        how: 'closed',
        ...where,
        ...one,
        openedMs: nowMs + one.openedMs,
        clearedMs: nowMs + one.clearedMs,
      }));
      return { nowMs, pins: [], cleared };
    }
    default:
      return undefined;
  }
}

function dated(report: EndpointReport, at: (ageMs: number | undefined) => number | undefined): EndpointReport {
  const { leftAtMs, lastUsedMs, forgotten, holders, drain } = report;
  const known = (ageMs: number) => at(ageMs) ?? ageMs;
  return {
    ...report,
    leftAtMs: at(leftAtMs),
    lastUsedMs: at(lastUsedMs),
    forgotten: forgotten && { mayBeOpenUntilMs: at(forgotten.mayBeOpenUntilMs) },
    holders: holders.map((one) => ({
      ...one,
      openedMs: known(one.openedMs),
      lastUsedMs: known(one.lastUsedMs),
      mayBeOpenUntilMs: at(one.mayBeOpenUntilMs),
    })),
    drain: drain && {
      ...drain,
      lastUsedMs: at(drain.lastUsedMs),
      reporters: drain.reporters.map((one) => ({ ...one, lastUsedMs: known(one.lastUsedMs) })),
    },
  };
}
