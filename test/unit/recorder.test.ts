import { describe, expect, it } from 'vitest';
import type { ConnectionEnd } from '../../src/assemble/connection-table.ts';
import { type RecordedStream, Recorder } from '../../src/flow/recorder.ts';
import { defaultStatusRule } from '../../src/judge/success.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import type { AttemptVerdict, JudgedExchange, PinVerdict } from '../../src/model/verdict.ts';
import type { ClusterView } from '../../src/model/view.ts';
import { downstreamEnd, endpoint, reporter, tunnelled, upstreamEnd } from '../support/entries.ts';

const minute = 60_000;
const hour = 60 * minute;

/** On our clock 127.0.0.11 left at 10:00 for .12; the grace is 10 s; the view began an hour before. */
const leftAtMs = 10 * hour;
const view: ClusterView = {
  cluster: 'app',
  source: 'dns',
  subject: 'app.test',
  firstAnswerMs: leftAtMs - hour,
  lastAnswerMs: leftAtMs + minute,
  staleAfterMs: hour,
  graceMs: 10_000,
  sameAsProxy: true,
  listed: new Map([['127.0.0.12', leftAtMs]]),
  left: new Map([['127.0.0.11', leftAtMs]]),
  changes: { added: 1, removed: 1 },
  lastError: undefined,
};

const stream: RecordedStream = { id: 1, profile: 'full', reporter };

/** A recorder whose clock is at `at.ms`, with all that it found. */
function setUp(startMs: number) {
  const at = { ms: startMs };
  const exchanges: JudgedExchange[] = [];
  const tcp: AttemptVerdict[] = [];
  const ends: { how: ConnectionEnd; connectionId: string; last: PinVerdict }[] = [];
  const pinned: { requests: number; bytes: number }[] = [];
  const tried: string[] = [];
  const opened: string[] = [];
  const watched = new Set<string>();
  let mismatches = 0;
  const recorder = new Recorder(
    {
      join: { lingerMs: 2500, maxWaitMs: minute, maxExchanges: 100, maxAttempts: 8 },
      connections: { maxConnections: 100, quietMs: minute, resumeMs: 2.5 * minute },
      rule: () => defaultStatusRule,
      view: () => ({
        cluster: (name) => (name === 'app' ? view : undefined),
        clusters: () => [view],
        proxy: () => undefined,
        proxies: () => [],
      }),
      watch: (cluster, nodeId) => watched.add(`${cluster} of ${nodeId}`),
      idleTimeoutMs: () => hour,
      reporterOf: (base) => base,
      now: () => at.ms,
    },
    {
      exchange: (judged) => exchanges.push(judged),
      tcpEnd: (_, verdict) => tcp.push(verdict),
      connectionForgotten: () => undefined,
      connectionEnd: ({ connectionId }, how, last) => ends.push({ how, connectionId, last }),
      joinEvent: () => undefined,
      attemptCountMismatch: () => {
        mismatches += 1;
      },
      connectionUse: (_, moved, { leftAtMs: left }) => left !== undefined && pinned.push(moved),
      connectionOpened: ({ connectionId }) => opened.push(connectionId),
      endpointTried: (cluster, { text }) => tried.push(`${cluster} ${text}`),
    },
  );
  recorder.opened(stream);
  const later = (ms: number) => {
    at.ms += ms;
    recorder.advance();
  };
  const hear = (entries: LogEntry[], on = stream) => recorder.entries(on, entries, at.ms);
  const pins = () => exchanges.map(({ verdict }) => verdict.pin?.pin);
  const rows = (all: ReturnType<Recorder['board']>) =>
    all.map(({ connection, verdict }) => `${connection.connectionId} ${verdict.pin}`);
  const board = () => rows(recorder.board());
  const parked = () => rows(recorder.parked());
  return {
    recorder,
    at,
    exchanges,
    tcp,
    ends,
    pinned,
    tried,
    opened,
    watched,
    mismatches: () => mismatches,
    later,
    hear,
    pins,
    board,
    parked,
  };
}

interface Sent {
  key?: string;
  startMs: number;
  durationMs?: number;
  ip?: string;
  connectionId?: string;
  /** When the request was sent. */
  ageMs: number;
  bytes?: number;
}

/** Both entries of one request to `ip` (.11 unless told otherwise) over a connection of that age. */
function request({
  key = 'k1',
  startMs,
  durationMs = 20,
  ip = '127.0.0.11',
  connectionId = '7',
  ageMs,
  bytes = 0,
}: Sent) {
  const upstream = endpoint(`${ip}:8080`);
  const tags = { connectionId, connectionAgeMs: ageMs };
  const common = { key, startMs, durationMs, upstream, tags, firstUpstreamTxMs: 0 };
  return [upstreamEnd({ ...common, bytesSent: bytes }), downstreamEnd(common)];
}

interface TcpSeen {
  type: 'tcp_upstream_connected' | 'tcp_periodic' | 'tcp_connection_end';
  startMs: number;
  durationMs: number | undefined;
  bytes?: number;
}

function tcpEntry({ type, startMs, durationMs, bytes = 0 }: TcpSeen): LogEntry {
  const common = {
    type,
    layer: 'tcp' as const,
    key: 't1',
    startMs,
    durationMs,
    code: undefined,
    codeDetails: undefined,
  };
  const closesConnection = type === 'tcp_connection_end';
  return downstreamEnd({
    ...common,
    closesConnection,
    bytesReceived: bytes,
    tags: { connectionId: '9', connectionAgeMs: undefined },
  });
}

describe('requests', () => {
  it('become judged exchanges, and their clusters are looked up from then on', () => {
    const { hear, later, exchanges, watched } = setUp(leftAtMs + minute);
    hear(request({ startMs: leftAtMs + minute - 20, ip: '127.0.0.12', ageMs: 100 }));
    later(2499);
    expect(exchanges).toEqual([]);
    later(1);
    expect(exchanges).toMatchObject([
      { exchange: { key: 'k1', profile: 'full' }, verdict: { outcome: 'ok', pin: { pin: 'current', source: 'dns' } } },
    ]);
    expect([...watched]).toEqual(['app of shop-1.default']);
  });

  it('whose attempts Envoy counted otherwise are counted, and the entries decide', () => {
    const { hear, later, exchanges, mismatches } = setUp(leftAtMs);
    const [tried, ended] = request({ startMs: leftAtMs - 20, ageMs: 100 });
    hear([tried, { ...ended, tags: { ...ended?.tags, attemptCountHeader: 3 } }] as LogEntry[]);
    later(2500);
    expect(mismatches()).toBe(1);
    expect(exchanges[0]?.exchange.attempts).toHaveLength(1);
  });

  it('of two Envoys with one node id, even with one key at one moment, stay two exchanges', () => {
    const { recorder, hear, later, exchanges } = setUp(leftAtMs + minute);
    const twin = { ...stream, id: 2 };
    recorder.opened(twin);
    const [tried, ended] = request({ startMs: leftAtMs + minute - 20, ageMs: 100 });
    hear([tried as LogEntry]);
    hear([tried as LogEntry], twin);
    hear([ended as LogEntry], twin);
    hear([ended as LogEntry]);
    later(2500);
    expect(exchanges.map(({ verdict, exchange }) => [verdict.outcome, exchange.attempts.length])).toEqual([
      ['ok', 1],
      ['ok', 1],
    ]);
  });

  it('that wait for their end when one of two such streams ends are lost by neither', () => {
    const { recorder, hear, later, exchanges } = setUp(leftAtMs + minute);
    const twin = { ...stream, id: 2 };
    recorder.opened(twin);
    const [tried, ended] = request({ startMs: leftAtMs + minute - 20, ageMs: 100 });
    hear([tried as LogEntry]);
    hear([tried as LogEntry], twin);
    recorder.closed(stream);
    hear([ended as LogEntry], twin);
    later(2500);
    later(minute);
    expect(exchanges.map(({ verdict }) => verdict.outcome)).toEqual(['ok', 'unknown']);
  });
});

describe.each([
  ['equal clocks', 0],
  ["Envoy's clock an hour ahead", hour],
  ["Envoy's clock an hour behind", -hour],
])('pins under %s', (_name, aheadMs) => {
  /** Our time, as that Envoy writes it. */
  const theirs = (ms: number) => ms + aheadMs;

  it.each<[string, Omit<Sent, 'startMs'> & { beganMs: number }, string]>([
    ['a listed endpoint', { beganMs: leftAtMs + minute, ip: '127.0.0.12', ageMs: 10 }, 'current'],
    ['a request of before the flip', { beganMs: leftAtMs - minute, ageMs: 10 }, 'current'],
    ['a response that was in flight', { beganMs: leftAtMs - minute, durationMs: 90_000, ageMs: 10 }, 'draining'],
    ['a request inside the grace', { beganMs: leftAtMs + 5000, ageMs: minute }, 'draining'],
    ['an old connection after the grace', { beganMs: leftAtMs + minute, ageMs: 2 * minute }, 'stale'],
    ['a new connection after the grace', { beganMs: leftAtMs + minute, ageMs: 10_000 }, 'stale_view'],
    ['a stranger on a new connection', { beganMs: leftAtMs + minute, ip: '127.0.0.99', ageMs: 1000 }, 'unlisted'],
    ['a stranger from before the view', { beganMs: leftAtMs + minute, ip: '127.0.0.99', ageMs: 2 * hour }, 'unknown'],
  ])('%s', (_case, { beganMs, durationMs = 20, ...sent }, pin) => {
    const { hear, later, pins } = setUp(beganMs + durationMs + 40);
    hear(request({ ...sent, durationMs, startMs: theirs(beganMs) }));
    later(2500);
    expect(pins()).toEqual([pin]);
  });

  it('a TCP connection that is kept becomes draining, then stale, and stays as long as it is heard of', () => {
    const openedMs = leftAtMs - minute;
    const { hear, later, at, board, ends } = setUp(openedMs);
    const periodic = () =>
      hear([tcpEntry({ type: 'tcp_periodic', startMs: theirs(openedMs), durationMs: at.ms - openedMs })]);
    hear([tcpEntry({ type: 'tcp_upstream_connected', startMs: theirs(openedMs), durationMs: 0 })]);
    later(minute / 2);
    periodic();
    later(minute / 2 + 1000);
    periodic();
    expect(board()).toEqual(['9 draining']);
    later(20_000);
    periodic();
    expect(board()).toEqual(['9 stale']);
    later(59_000);
    expect(board()).toEqual(['9 stale']);
    later(1000);
    expect(ends).toMatchObject([{ how: 'quiet', last: { pin: 'stale', leftAtMs } }]);
  });
});

describe('connections', () => {
  it('show as soon as a request over them was told, before its exchange is closed', () => {
    const { hear, board, exchanges } = setUp(leftAtMs + minute);
    hear(request({ startMs: leftAtMs + minute - 20, ageMs: 2 * minute }));
    expect(board()).toEqual(['7 stale']);
    expect(exchanges).toEqual([]);
  });

  it('of mirrored requests show too: what they are sent to is still in use', () => {
    const { hear, board } = setUp(leftAtMs + minute);
    const [tried] = request({ startMs: leftAtMs + minute - 20, ageMs: 2 * minute });
    hear([{ ...tried, downstreamRemote: undefined } as LogEntry]);
    expect(board()).toEqual(['7 stale']);
  });

  it('of a request that began before this stream: its bytes are counted at its end only if no other replica can have been told', () => {
    const { hear, at, pinned } = setUp(leftAtMs + minute);
    const ends = (key: string, durationMs: number, bytes: number) =>
      hear(request({ key, startMs: at.ms - durationMs, durationMs, ageMs: 2 * minute, bytes }));
    ends('short', 4000, 10);
    ends('long', 6000, 1000);
    at.ms += 10_000;
    ends('own', 9000, 100);
    expect(pinned).toEqual([
      { requests: 1, bytes: 10 },
      { requests: 1, bytes: 0 },
      { requests: 1, bytes: 100 },
    ]);
  });

  it('of a request that lives show before it ends: draining, however long it takes, and stale with the next request', () => {
    const { hear, later, at, board, pinned, exchanges } = setUp(leftAtMs - 2000);
    const startMs = leftAtMs - 5000;
    const periodic = (bytes: number) => {
      const [long] = request({ startMs, durationMs: at.ms - startMs, ageMs: minute, bytes });
      hear([{ ...long, type: 'upstream_periodic' } as LogEntry]);
    };
    periodic(10);
    expect(board()).toEqual(['7 current']);
    later(5000);
    periodic(30);
    expect(board()).toEqual(['7 draining']);
    later(minute - 1);
    periodic(35);
    expect(board()).toEqual(['7 draining']);
    expect(pinned).toEqual([
      { requests: 0, bytes: 20 },
      { requests: 0, bytes: 5 },
    ]);
    expect(exchanges).toEqual([]);
    hear(request({ key: 'k2', startMs: at.ms - 20, ageMs: 2 * minute }));
    expect(board()).toEqual(['7 stale']);
  });

  it('show their pin without a new request once the grace of a TCP connection is over', () => {
    const { hear, later, board } = setUp(leftAtMs + 2000);
    hear([tcpEntry({ type: 'tcp_periodic', startMs: leftAtMs - minute, durationMs: minute + 2000 })]);
    expect(board()).toEqual(['9 draining']);
    later(12_000);
    expect(board()).toEqual(['9 stale']);
  });

  it('of which Envoy tells no age yet are at most draining: the clocks are not known', () => {
    const { hear, board } = setUp(leftAtMs + minute);
    hear([tcpEntry({ type: 'tcp_upstream_connected', startMs: leftAtMs - hour, durationMs: undefined })]);
    expect(board()).toEqual(['9 draining']);
  });

  it('end with their last pin when Envoy says so', () => {
    const { hear, later, tcp, ends, board } = setUp(leftAtMs + minute);
    hear([tcpEntry({ type: 'tcp_periodic', startMs: leftAtMs - minute, durationMs: 2 * minute })]);
    later(1000);
    hear([tcpEntry({ type: 'tcp_connection_end', startMs: leftAtMs - minute, durationMs: 2 * minute + 1000 })]);
    expect(ends).toMatchObject([{ how: 'closed', connectionId: '9', last: { pin: 'stale' } }]);
    expect(tcp).toEqual([{ result: 'ok', cause: undefined }]);
    expect(board()).toEqual([]);
  });

  it('leave at once with their stream, and an exchange that it left open does not bring one back', () => {
    const { recorder, hear, later, exchanges, board, parked } = setUp(leftAtMs + minute);
    const [tried] = request({ startMs: leftAtMs + minute - 20, ageMs: 2 * minute });
    hear(request({ key: 'k0', startMs: leftAtMs + minute - 30, ageMs: 2 * minute - 10 }));
    hear([tried as LogEntry]);
    later(2500);
    expect(board()).toEqual(['7 stale']);
    recorder.closed(stream);
    expect(board()).toEqual([]);
    later(minute);
    expect(exchanges.map(({ verdict }) => verdict.outcome)).toEqual(['ok', 'unknown']);
    expect(board()).toEqual([]);
    expect(parked()).toEqual(['7 stale']);
  });

  it('of a stream that is gone are judged without its clock: never stale by guess', () => {
    const { recorder, hear, later, pins } = setUp(leftAtMs + minute);
    const [tried] = request({ startMs: leftAtMs - hour, ageMs: 2 * minute });
    hear([tried as LogEntry]);
    recorder.closed(stream);
    later(minute);
    expect(pins()).toEqual(['draining']);
  });

  it('go when the upstream broke them', () => {
    const { hear, later, ends } = setUp(leftAtMs + minute);
    const [tried, ended] = request({ startMs: leftAtMs + minute - 20, ageMs: 2 * minute });
    hear([
      { ...tried, flags: ['UC'], code: undefined, closesConnection: true, closedBy: 'server' },
      { ...ended, code: 503, flags: ['UC'] },
    ] as LogEntry[]);
    later(2500);
    expect(ends).toMatchObject([{ how: 'closed', connectionId: '7', last: { pin: 'stale' } }]);
  });
});

describe('bytes to an endpoint that left', () => {
  it('are those of requests that ended after it left', () => {
    const { hear, later, pinned, at } = setUp(leftAtMs - 1000);
    hear(request({ key: 'before', startMs: leftAtMs - 1020, ageMs: minute, bytes: 5 }));
    later(2500);
    hear(request({ key: 'after', startMs: at.ms - 20, ageMs: minute, bytes: 7 }));
    later(2500);
    expect(pinned).toEqual([{ requests: 1, bytes: 7 }]);
  });

  it('are, over TCP, what flowed since we first saw the connection', () => {
    const { hear, later, at, pinned } = setUp(leftAtMs + minute);
    const startMs = leftAtMs - minute;
    hear([tcpEntry({ type: 'tcp_periodic', startMs, durationMs: at.ms - startMs, bytes: 1000 })]);
    later(1000);
    hear([tcpEntry({ type: 'tcp_periodic', startMs, durationMs: at.ms - startMs, bytes: 1250 })]);
    later(1000);
    hear([tcpEntry({ type: 'tcp_connection_end', startMs, durationMs: at.ms - startMs, bytes: 1300 })]);
    expect(pinned.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(300);
  });
});

it('a flush gives out all that is open', () => {
  const { recorder, hear, exchanges } = setUp(leftAtMs);
  hear(request({ key: 'whole', startMs: leftAtMs - 20, ageMs: 10 }));
  hear(request({ key: 'half', startMs: leftAtMs - 20, ageMs: 10 }).slice(0, 1));
  recorder.flush();
  expect(exchanges.map(({ verdict }) => verdict.unknownReason)).toEqual([undefined, 'end_not_seen']);
});

describe('a tunnel', () => {
  const beganMs = leftAtMs + minute - 20;
  const silent = (key: string, connectionAgeMs: number) =>
    upstreamEnd({
      key,
      startMs: beganMs,
      durationMs: 20,
      upstream: tunnelled('127.0.0.11:8080'),
      code: undefined,
      flags: ['UC'],
      closesConnection: true,
      closedBy: 'server',
      tags: { connectionId: '7', connectionAgeMs },
    });

  it('of which nothing came back is no connection, but an endpoint that was tried', () => {
    const { hear, opened, ends, pinned, tried } = setUp(leftAtMs + minute);
    hear([silent('k1', 0.02)]);
    expect([opened, ends, pinned]).toEqual([[], [], []]);
    expect(tried).toEqual(['app envoy://connect_originate/127.0.0.11:8080']);
  });

  it('that had carried answers ends as any connection does', () => {
    const { hear, opened, ends } = setUp(leftAtMs + minute);
    const [answered] = request({ startMs: beganMs - 1000, ageMs: 2 * minute });
    hear([{ ...answered, upstream: tunnelled('127.0.0.11:8080') }] as LogEntry[]);
    hear([silent('k2', 2 * minute + 1000)]);
    expect(opened).toEqual(['7']);
    expect(ends).toMatchObject([{ how: 'closed', connectionId: '7', last: { pin: 'stale' } }]);
  });
});

describe('tries of an endpoint', () => {
  it('are every attempt, a refused one too, and of TCP every connection once', () => {
    const { hear, tried, opened } = setUp(leftAtMs + minute);
    const [refused] = request({ startMs: leftAtMs, ageMs: 0, ip: '127.0.0.13' });
    hear([{ ...refused, tags: { ...refused?.tags, connectionId: undefined } } as LogEntry]);
    const startMs = leftAtMs + 1000;
    hear([tcpEntry({ type: 'tcp_upstream_connected', startMs, durationMs: 0 })]);
    hear([tcpEntry({ type: 'tcp_periodic', startMs, durationMs: 1000 })]);
    hear([tcpEntry({ type: 'tcp_connection_end', startMs, durationMs: 2000 })]);
    expect(tried).toEqual(['app 127.0.0.13:8080', 'app 127.0.0.11:8080']);
    expect(opened).toEqual(['9']);
  });
});
