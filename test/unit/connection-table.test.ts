import { describe, expect, it } from 'vitest';
import { type ConnectionSeen, ConnectionTable, type ConnectionUse } from '../../src/assemble/connection-table.ts';
import { endpoint, reporter } from '../support/entries.ts';

const hour = 3_600_000;

interface Options {
  maxConnections?: number;
  idleTimeoutMs?: number | undefined;
  pinned?: readonly string[];
}

function setUp({ maxConnections = 100, pinned = [], ...options }: Options = {}) {
  const ended: string[] = [];
  const forgotten: string[] = [];
  const table = new ConnectionTable(
    { maxConnections, quietMs: 60_000, resumeMs: 150_000 },
    {
      ended: ({ connectionId }, how, by) => ended.push([connectionId, how, by].filter(Boolean).join(' ')),
      idleTimeoutMs: () => ('idleTimeoutMs' in options ? options.idleTimeoutMs : hour),
      forgotten: ({ connectionId }) => forgotten.push(connectionId),
      isPinned: ({ connectionId }) => pinned.includes(connectionId),
    },
  );
  /** A request over connection 7 of stream 1 that ended at 1020, unless told otherwise. */
  const request = (overrides: Partial<ConnectionSeen> = {}, use: Partial<ConnectionUse> = {}) =>
    table.heard(seen(overrides), { key: 'k', bytes: 1, ended: true, countsFromStart: true, ...use });
  const tcp = (bytes: number, overrides: Partial<ConnectionSeen> = {}) =>
    table.heard(seen({ layer: 'tcp', requestStartMs: undefined, ...overrides }), {
      key: 't',
      bytes,
      ended: false,
      countsFromStart: false,
    });
  const ids = () => Array.from(table.connections(), ({ connectionId }) => connectionId);
  const parked = () => Array.from(table.parked(), ({ connectionId }) => connectionId);
  return { table, ended, forgotten, ids, parked, request, tcp };
}

function seen(overrides: Partial<ConnectionSeen> = {}): ConnectionSeen {
  return {
    streamId: 1,
    reporter,
    layer: 'http',
    cluster: 'app',
    peer: endpoint('127.0.0.11:8080'),
    connectionId: '7',
    openedMs: 500,
    requestStartMs: 1000,
    lastUsedMs: 1020,
    lastHeardMs: overrides.lastUsedMs ?? 1020,
    clockUncertaintyMs: 0,
    ...overrides,
  };
}

describe('what is known of a connection', () => {
  it('adds up the requests and bytes of an HTTP connection', () => {
    const { table, request } = setUp();
    request({}, { bytes: 30 });
    const { connection } = request({ requestStartMs: 2000, lastUsedMs: 2020 }, { bytes: 12 });
    expect(connection).toMatchObject({
      requests: 2,
      bytes: 42,
      requestStartMs: 2000,
      lastUsedMs: 2020,
      openedMs: 500,
    });
    expect(table.size).toBe(1);
  });

  it('keeps the latest request of a shared HTTP/2 connection, also when one that began before it ends after it', () => {
    const { request } = setUp();
    request({ requestStartMs: 9000, lastUsedMs: 9050 });
    expect(request({ requestStartMs: 1000, lastUsedMs: 9040 }).connection).toMatchObject({
      requestStartMs: 9000,
      lastUsedMs: 9050,
    });
  });

  it('takes the bytes of a TCP connection as they grow; what flowed before it was first heard of is nobody’s', () => {
    const { tcp } = setUp();
    expect(tcp(100)).toMatchObject({ newBytes: 0, isNew: true });
    expect(tcp(250)).toMatchObject({ newBytes: 150, isNew: false, connection: { bytes: 150, requests: 0 } });
  });

  it('does not call a TCP connection used because it was heard of without a new byte', () => {
    const { tcp } = setUp();
    tcp(100);
    expect(tcp(100, { lastUsedMs: 9000, lastHeardMs: 9000 }).connection).toMatchObject({
      lastUsedMs: 1020,
      lastHeardMs: 9000,
    });
    expect(tcp(101, { lastUsedMs: 9500 }).connection.lastUsedMs).toBe(9500);
  });

  it('counts the bytes of a long request as they come, and at its end only the rest', () => {
    const { request } = setUp();
    expect(request({}, { key: 'long', bytes: 100, ended: false })).toMatchObject({ newBytes: 100 });
    expect(request({}, { key: 'long', bytes: 140, ended: false })).toMatchObject({ newBytes: 40 });
    expect(request({}, { key: 'long', bytes: 150 })).toMatchObject({
      newBytes: 10,
      connection: { requests: 1, bytes: 150 },
    });
  });

  it('of a long request that another replica may have told of, what flowed before counts for nobody', () => {
    const { request } = setUp();
    const other = { key: 'long', ended: false, countsFromStart: false };
    expect(request({}, { ...other, bytes: 5000 })).toMatchObject({ newBytes: 0 });
    expect(request({}, { ...other, bytes: 5010 })).toMatchObject({ newBytes: 10 });
  });

  it.each([
    ['a TCP connection', { layer: 'tcp' as const, requestStartMs: undefined }, false],
    ['a long request', {}, true],
  ])(
    '%s of which another replica was told in between: only what this one was told is counted',
    (_what, layer, ended) => {
      const { table, request } = setUp();
      const tell = (streamId: number, lastUsedMs: number, bytes: number, isEnd = false) =>
        request({ ...layer, streamId, lastUsedMs }, { key: 'long', bytes, ended: isEnd, countsFromStart: false });
      tell(1, 2000, 100);
      expect(tell(1, 7000, 150)).toMatchObject({ newBytes: 50 });
      table.endStream(1);
      // Anew at this replica at once: nobody else was told.
      expect(tell(2, 12_000, 200)).toMatchObject({ newBytes: 50 });
      table.endStream(2);
      const back = tell(3, 312_000, 5000);
      expect(back).toMatchObject({ newBytes: 0, isNew: false, connection: { bytes: 100, lastUsedMs: 312_000 } });
      expect(tell(3, 317_000, 5060)).toMatchObject({ newBytes: 60 });
      table.endStream(3);
      expect(tell(4, 617_000, 9000, ended)).toMatchObject({ newBytes: 0 });
    },
  );

  it('knows what is under way on it, until its end or until nothing more is heard of it', () => {
    const { request } = setUp();
    const long = request({}, { key: 'long', ended: false }).connection;
    expect([...long.underWay.keys()]).toEqual(['long']);
    expect(request({ lastUsedMs: 30_000 }, { key: 'short' }).connection.underWay.size).toBe(1);
    expect(request({ lastUsedMs: 90_000 }, { key: 'short' }).connection.underWay.size).toBe(0);
    request({ lastUsedMs: 90_000 }, { key: 'next', ended: false });
    expect(request({ lastUsedMs: 91_000 }, { key: 'next' }).connection.underWay.size).toBe(0);
  });

  it('keeps the same id on two streams apart: two Envoys count alike', () => {
    const { table, ended, ids, request } = setUp();
    request();
    request({ streamId: 2 });
    expect(table.size).toBe(2);
    table.closed(1, '7', 'server');
    expect(ended).toEqual(['7 closed server']);
    expect(ids()).toEqual(['7']);
  });
});

describe('how a connection leaves those in use', () => {
  it('when its end was logged, once; an id that is not there is nothing', () => {
    const { table, ended, parked, request } = setUp();
    request();
    table.closed(1, '7', undefined);
    table.closed(1, '7', undefined);
    expect(ended).toEqual(['7 closed']);
    expect(table.size).toBe(0);
    expect(parked()).toEqual([]);
  });

  it('when it was quiet for so long, not before', () => {
    const { table, ended, request } = setUp();
    request();
    request({ connectionId: '8', lastUsedMs: 5000 });
    table.advance(61_019);
    expect(ended).toEqual([]);
    table.advance(61_020);
    expect(ended).toEqual(['7 quiet']);
    table.advance(65_000);
    expect(ended).toEqual(['7 quiet', '8 quiet']);
  });

  it('when its stream ends, at once and alone', () => {
    const { table, ended, ids, request } = setUp();
    request();
    request({ streamId: 2, connectionId: '9' });
    table.endStream(1);
    expect(ended).toEqual(['7 stream_ended']);
    expect(ids()).toEqual(['9']);
  });

  it('when the table is full: not the oldest, nor the busiest, nor a pinned one', () => {
    const { ended, request } = setUp({ maxConnections: 4, pinned: ['pinned'] });
    request({ connectionId: 'oldest', openedMs: 1 });
    request({ connectionId: 'plain', openedMs: 3 });
    for (let count = 0; count < 3; count += 1) request({ connectionId: 'busiest', openedMs: 4 });
    request({ connectionId: 'pinned', openedMs: 5 });
    request({ connectionId: 'old', openedMs: 2 });
    expect(ended).toEqual(['plain evicted']);
  });
});

describe('one that may still be open', () => {
  it('is remembered though the table of those in use is full; what there is no room for at all is told', () => {
    const { ended, forgotten, parked, request } = setUp({ maxConnections: 2 });
    for (let id = 1; id <= 4; id += 1) request({ connectionId: `${id}`, openedMs: id });
    expect([ended, parked(), forgotten]).toEqual([['3 evicted', '4 evicted'], ['3', '4'], []]);
    for (let id = 5; id <= 6; id += 1) request({ connectionId: `${id}`, openedMs: id });
    expect(forgotten.length).toBe(2);
  });

  it('is remembered until its idle timeout is over', () => {
    const { table, parked, request } = setUp();
    request();
    table.advance(61_020);
    expect(parked()).toEqual(['7']);
    table.advance(1019 + hour);
    expect(parked()).toEqual(['7']);
    table.advance(6019 + hour);
    expect(parked()).toEqual([]);
  });

  it('is remembered for ever where its proxy closes none for want of use', () => {
    const { table, parked, request } = setUp({ idleTimeoutMs: undefined });
    request();
    table.advance(61_020);
    table.advance(1000 * hour);
    expect(parked()).toEqual(['7']);
  });

  it('goes on as the same one when another stream of its Envoy tells of it', () => {
    const { table, ended, parked, request } = setUp();
    const { connection: before } = request({}, { bytes: 30 });
    table.endStream(1);
    expect(parked()).toEqual(['7']);
    const { connection, isNew } = request({ streamId: 2, openedMs: 900, lastUsedMs: 5000 }, { bytes: 12 });
    expect(isNew).toBe(false);
    expect(connection).toMatchObject({ serial: before.serial, requests: 2, bytes: 42, streamId: 2 });
    expect(parked()).toEqual([]);
    expect(ended).toEqual(['7 stream_ended']);
  });

  it.each([
    ['opened at another time: the Envoy began to count anew', { openedMs: 5000 }],
    ['of another Envoy', { reporter: { ...reporter, nodeId: 'other' } }],
    ['to another endpoint', { peer: endpoint('127.0.0.12:8080') }],
  ])('is not one %s', (_why, other) => {
    const { table, parked, request } = setUp();
    request();
    table.endStream(1);
    expect(request({ streamId: 2, lastUsedMs: 9000, ...other }).isNew).toBe(true);
    expect(parked()).toEqual(['7']);
  });

  it('is forgotten when Envoy says that it is not there', () => {
    const { table, parked, ended, request } = setUp();
    const { connection } = request();
    table.advance(61_020);
    table.gone(connection);
    expect(parked()).toEqual([]);
    const { connection: inUse } = request({ connectionId: '8', lastUsedMs: 70_000 });
    table.gone(inUse);
    expect(ended).toEqual(['7 quiet', '8 gone']);
  });

  it('is bounded too, and one that was restored counts', () => {
    const { table, parked, request } = setUp({ maxConnections: 2, pinned: ['7'] });
    const { serial: _, streamId: __, ...one } = request().connection;
    table.endStream(1);
    table.restore([
      { ...one, connectionId: '8', openedMs: 700 },
      { ...one, connectionId: '9', openedMs: 600 },
    ]);
    expect(parked()).toEqual(['7', '9']);
  });
});

describe('our clock that was set forward', () => {
  it('makes nothing older: what is in use stays so, and what may be open does', () => {
    const { table, ids, parked, request } = setUp();
    request();
    table.advance(61_020);
    request({ connectionId: '8', lastUsedMs: 61_020 });
    table.clockSetForward(2 * hour);
    table.advance(2 * hour + 61_100);
    expect([ids(), parked()]).toEqual([['8'], ['7']]);
    expect([...table.connections()][0]).toMatchObject({ lastUsedMs: 2 * hour + 61_020 });
  });
});

describe('our clock that was set back', () => {
  it('lets go of a quiet connection a quiet time later, not when the clock is where it was', () => {
    const { table, ended, request } = setUp();
    request({ lastUsedMs: hour });
    table.advance(hour);
    table.advance(250);
    table.advance(60_249);
    expect(ended).toEqual([]);
    table.advance(60_250);
    expect(ended).toEqual(['7 quiet']);
  });

  it('counts from the latest use after it', () => {
    const { table, ended, request } = setUp();
    request({ lastUsedMs: hour });
    table.advance(hour);
    table.advance(250);
    request({ lastUsedMs: 1000 });
    table.advance(60_999);
    expect(ended).toEqual([]);
    table.advance(61_000);
    expect(ended).toEqual(['7 quiet']);
  });
});
