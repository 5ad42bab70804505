import { describe, expect, it } from 'vitest';
import { EndpointActivity } from '../../src/endpoints/activity.ts';
import { DrainCurves } from '../../src/endpoints/drain-curves.ts';
import { type EndpointQuery, endpointReports, type ReportFacts, unusedEndpoints } from '../../src/endpoints/report.ts';
import type { UpstreamConnection } from '../../src/model/upstream-connection.ts';
import type { ClusterView, DiscoveryView, ProxyView } from '../../src/model/view.ts';
import { connection } from '../support/connections.ts';
import { endpoint, reporter } from '../support/entries.ts';
import { pin } from '../support/judged.ts';

const nowMs = 100_000;
const left = 90_000;
const app: ClusterView = {
  cluster: 'app',
  source: 'dns',
  subject: 'app.test',
  firstAnswerMs: 1000,
  lastAnswerMs: nowMs,
  staleAfterMs: 60_000,
  graceMs: 10_000,
  sameAsProxy: true,
  listed: new Map([
    ['127.0.0.12', left],
    ['127.0.0.13', 1000],
  ]),
  left: new Map([['127.0.0.11', left]]),
  changes: { added: 1, removed: 1 },
  lastError: undefined,
};
const file: ClusterView = {
  ...app,
  cluster: 'filed',
  source: 'file',
  subject: 'endpoints.yaml',
  listed: new Map([['[::1]:80', 1000]]),
  left: new Map(),
};
const views = [app, file];
const view: DiscoveryView = {
  cluster: (name) => views.find(({ cluster }) => cluster === name),
  clusters: () => views,
  proxy: () => undefined,
  proxies: () => [],
};
const stale = pin({ pin: 'stale', leftAtMs: left });
const held = (of: Partial<UpstreamConnection> = {}) => ({ connection: connection(of), verdict: stale });

function setUp(facts: Partial<ReportFacts> = {}) {
  const activity = new EndpointActivity({ windowMs: 60_000, maxEndpoints: 100 });
  const curves = new DrainCurves(10);
  const reports = (query: EndpointQuery = {}) =>
    endpointReports(
      {
        view,
        uses: [...activity.uses(nowMs)],
        inUse: [],
        parked: [],
        curves,
        forgottenAt: () => undefined,
        isConnected: () => true,
        idleTimeoutMs: () => 3_600_000,
        advise: () => undefined,
        nowMs,
        ...facts,
      },
      query,
    );
  const brief = (query?: EndpointQuery) =>
    reports(query).map(({ cluster, endpoint: text, state }) => `${cluster} ${text} ${state}`);
  return { activity, curves, reports, brief };
}

describe('the endpoints', () => {
  it('are those that a source lists or listed, and those that were used: what left first', () => {
    const { activity, brief } = setUp();
    activity.used('app', endpoint('127.0.0.12:8080'), nowMs);
    activity.used('app', endpoint('127.0.0.99:8080'), nowMs);
    activity.used('nobody-lists', endpoint('127.0.0.1:80'), nowMs);
    expect(brief()).toEqual([
      'app 127.0.0.11 left',
      'nobody-lists 127.0.0.1:80 unknown',
      'app 127.0.0.99:8080 unlisted',
      'app 127.0.0.12:8080 listed',
      'app 127.0.0.13 listed',
      'filed [::1]:80 listed',
    ]);
  });

  it('are, if only what left is asked for, those addresses in every cluster that knows them', () => {
    const { activity, brief } = setUp();
    activity.used('app', endpoint('127.0.0.12:8080'), nowMs);
    activity.used('app', endpoint('127.0.0.11:8080'), nowMs);
    activity.used('nobody-lists', endpoint('127.0.0.11:8080'), nowMs);
    expect(brief({ left: true })).toEqual(['app 127.0.0.11:8080 left', 'nobody-lists 127.0.0.11:8080 unknown']);
  });

  it.each<[string, EndpointQuery, string[]]>([
    ['an address', { endpoint: { ip: '127.0.0.11', port: undefined } }, ['app 127.0.0.11:8080 left']],
    ['an address and port', { endpoint: { ip: '127.0.0.11', port: 8080 } }, ['app 127.0.0.11:8080 left']],
    ['another port of one that left as a whole', { endpoint: { ip: '127.0.0.11', port: 1 } }, ['app 127.0.0.11 left']],
    ['an address that is listed without port', { endpoint: { ip: '127.0.0.13', port: 1 } }, ['app 127.0.0.13 listed']],
    ['an IPv6 address', { endpoint: { ip: '::1', port: undefined } }, ['filed [::1]:80 listed']],
    ['a name', { host: 'app.test' }, ['app 127.0.0.11:8080 left', 'app 127.0.0.12 listed', 'app 127.0.0.13 listed']],
    ['a cluster', { cluster: 'filed' }, ['filed [::1]:80 listed']],
    ['what is not there', { host: 'other.test' }, []],
  ])('can be asked for by %s', (_what, query, expected) => {
    expect(setUp({ inUse: [held()] }).brief(query)).toEqual(expected);
  });

  it('tell their share of their cluster, beside the fair one; a listed one that got nothing has 0', () => {
    const { activity, reports } = setUp();
    for (let count = 0; count < 3; count += 1) activity.used('app', endpoint('127.0.0.12:8080'), nowMs);
    activity.used('app', endpoint('127.0.0.11:8080'), nowMs);
    const shares = reports({ cluster: 'app' }).map((row) => [row.endpoint, row.requests, row.share, row.fairShare]);
    expect(shares).toEqual([
      ['127.0.0.11:8080', 1, 0.25, undefined],
      ['127.0.0.12:8080', 3, 0.75, 0.5],
      ['127.0.0.13', 0, 0, 0.5],
    ]);
    expect(reports({ cluster: 'filed' })[0]).toMatchObject({ requests: 0, share: undefined, fairShare: 1 });
  });

  it('whose view is too old to judge by are unknown, with the reason', () => {
    const old = { ...app, lastAnswerMs: 1000 };
    const { reports } = setUp({ view: { ...view, clusters: () => [old], cluster: () => old } });
    expect(reports().map(({ state, reason }) => [state, reason])).toEqual([
      ['unknown', 'source_stale'],
      ['unknown', 'source_stale'],
      ['unknown', 'source_stale'],
    ]);
  });
});

describe("the proxies' own lists", () => {
  const host = { activeConnections: 0, healthy: true, pendingRemoval: false };
  const proxy = (nodeId: string, over: Partial<ProxyView> = {}): ProxyView => ({
    nodeId,
    cluster: 'app',
    subject: 'http://127.0.0.1:15000',
    type: 'EDS',
    envoyVersion: '1.40.0',
    hosts: new Map([['127.0.0.11:8080', host]]),
    activeConnections: 0,
    openedMeanwhile: false,
    idleTimeoutMs: undefined,
    closesOnHostSetChange: false,
    ignoresHealthOnRemoval: false,
    maxConnectionDurationMs: undefined,
    newDnsImplementation: undefined,
    lastAnswerMs: nowMs,
    staleAfterMs: 60_000,
    lastError: undefined,
    ...over,
  });

  it('name who may still open connections to one that left', () => {
    const proxies = [
      proxy('lists-it'),
      proxy('knows', { hosts: new Map([['127.0.0.12:8080', host]]) }),
      proxy('keeps', { hosts: new Map([['127.0.0.11:8080', { ...host, pendingRemoval: true }]]) }),
      proxy('silent', { lastAnswerMs: 0 }),
      proxy('of-another-cluster', { cluster: 'filed' }),
    ];
    const inUse = [held(), held({ peer: endpoint('127.0.0.12:8080') })];
    const rows = setUp({ inUse, view: { ...view, proxies: () => proxies } }).reports({ cluster: 'app' });
    expect(rows.map(({ endpoint: text, listedBy }) => [text, listedBy])).toEqual([
      ['127.0.0.11:8080', ['lists-it']],
      ['127.0.0.12:8080', []],
      ['127.0.0.13', []],
    ]);
  });
});

describe('the connections to one that left', () => {
  it('are listed, what is surely open first, with how long they may be', () => {
    const { reports } = setUp({
      inUse: [
        held(),
        held({ connectionId: '8', underWay: new Map([['k', { bytes: 1, heardMs: nowMs }]]) }),
        held({ connectionId: '9', layer: 'tcp', openedMs: 3000 }),
      ],
      parked: [held({ connectionId: '10', lastUsedMs: 5000, lastHeardMs: 5000 })],
    });
    const [row] = reports({ cluster: 'app' });
    expect(row).toMatchObject({ state: 'left', leftAtMs: left, connections: { open: 2, idle: 1, unseen: 1 } });
    expect(row?.holders.map((one) => [one.connectionId, one.state, one.mayBeOpenUntilMs])).toEqual([
      ['8', 'open', undefined],
      ['9', 'open', 3_602_020],
      ['7', 'idle', 3_602_020],
      ['10', 'unseen', 3_605_000],
    ]);
    expect(row?.holders[0]).toMatchObject({ pin: 'stale', reporter, reporterConnected: true, requests: 1, bytes: 30 });
  });

  it.each([
    ['a request whose end was mapped by a clock that was set since', { lastUsedMs: left - 3_600_000 }],
    ['a TCP connection that outlived its idle timeout without a byte', { layer: 'tcp', lastUsedMs: 2020 } as const],
  ])('may be open for an idle timeout since they were heard of: %s', (_, of) => {
    const { reports } = setUp({ parked: [held({ ...of, lastHeardMs: nowMs - 1000 })] });
    expect(reports()[0]?.holders[0]?.mayBeOpenUntilMs).toBe(nowMs - 1000 + 3_600_000);
  });

  it('may be open for ever where the proxy closes none for want of use', () => {
    const { reports } = setUp({ parked: [held()], idleTimeoutMs: () => undefined });
    expect(reports()[0]?.holders[0]?.mayBeOpenUntilMs).toBeUndefined();
  });

  it('are not listed of an endpoint that is listed, only counted', () => {
    const to = { peer: endpoint('127.0.0.12:8080') };
    const { reports } = setUp({ inUse: [held(to)] });
    const row = reports().find(({ endpoint: text }) => text === '127.0.0.12:8080');
    expect(row).toMatchObject({ connections: { open: 0, idle: 1, unseen: 0 }, holders: [] });
  });

  it('come with what still went there since it left', () => {
    const { curves, reports } = setUp();
    curves.add({ connection: connection(), leftAtMs: left, atMs: left + 100, requests: 1, bytes: 9 });
    const rows = reports({ cluster: 'app' });
    expect(rows.find(({ state }) => state === 'left')?.drain).toBeUndefined();
    const held7 = setUp({ inUse: [held()], curves }).reports({ cluster: 'app' });
    expect(held7[0]?.drain).toMatchObject({ requests: 1, bytes: 9, lastUsedMs: left + 100 });
  });
});

describe('an answer about many endpoints', () => {
  it('is brief about each: a few connections, and no curve; the numbers stay whole', () => {
    const ofMany = Array.from({ length: 30 }, (_, index) => `127.0.1.${index}`);
    const many = { ...app, left: new Map(ofMany.map((ip) => [ip, left])), listed: new Map<string, number>() };
    const curves = new DrainCurves(100);
    const inUse = ofMany.flatMap((ip) =>
      Array.from({ length: 300 }, (_, serial) => held({ serial, peer: endpoint(`${ip}:80`) })),
    );
    for (const { connection: of } of inUse)
      curves.add({ connection: of, leftAtMs: left, atMs: left, requests: 1, bytes: 1 });
    const { reports } = setUp({ inUse, curves, view: { ...view, cluster: () => many, clusters: () => [many] } });
    const rows = reports();
    expect(rows).toHaveLength(30);
    for (const row of rows) {
      expect(row.holders).toHaveLength(133);
      expect(row.connections.idle).toBe(300);
      expect(row.drain).toMatchObject({ requests: 300, points: [], reporters: [{ requests: 300, points: [] }] });
    }
    const [one] = reports({ endpoint: { ip: '127.0.1.7', port: 80 } });
    expect(one?.holders).toHaveLength(200);
    expect(one?.drain?.points).toHaveLength(1);
  });
});

describe('endpoints without evidence', () => {
  it('are counted of clusters that had traffic, whichever way a source spells them', () => {
    const activity = new EndpointActivity({ windowMs: 60_000, maxEndpoints: 100 });
    activity.used('app', endpoint('127.0.0.12:8080'), nowMs);
    activity.used('filed', endpoint('[::1]:80'), nowMs);
    activity.used('unlisted-cluster', endpoint('127.0.0.1:80'), nowMs);
    expect([...unusedEndpoints(activity.uses(nowMs), view)]).toEqual([
      ['app', 1],
      ['filed', 0],
    ]);
    expect([...unusedEndpoints(activity.uses(nowMs + 60_001), view)]).toEqual([]);
  });
});
