import { describe, expect, it } from 'vitest';
import { type ConnectionSeen, ConnectionTable } from '../../src/assemble/connection-table.ts';
import { endpoint, reporter } from '../support/entries.ts';

function setUp(options: Partial<ConstructorParameters<typeof ConnectionTable>[0]> = {}) {
  const ended: string[] = [];
  const table = new ConnectionTable({ maxConnections: 100, quietMs: 60_000, ...options }, (connection, how) =>
    ended.push(`${connection.connectionId} ${how}`),
  );
  const ids = () => Array.from(table.connections(), ({ connectionId }) => connectionId);
  return { table, ended, ids };
}

/** A request over connection 7 of stream 1 that began at 1000 and ended at 1020, unless told otherwise. */
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
    clockUncertaintyMs: 0,
    ...overrides,
  };
}

describe('what is known of a connection', () => {
  it('adds up the requests and bytes of an HTTP connection', () => {
    const { table } = setUp();
    table.request(seen(), 30);
    const known = table.request(seen({ requestStartMs: 2000, lastUsedMs: 2020 }), 12);
    expect(known).toMatchObject({ requests: 2, bytes: 42, requestStartMs: 2000, lastUsedMs: 2020, openedMs: 500 });
    expect(table.size).toBe(1);
  });

  it('keeps the latest request of a shared HTTP/2 connection, also when one that began before it ends after it', () => {
    const { table } = setUp();
    table.request(seen({ requestStartMs: 9000, lastUsedMs: 9050 }), 1);
    expect(table.request(seen({ requestStartMs: 1000, lastUsedMs: 9040 }), 1)).toMatchObject({
      requestStartMs: 9000,
      lastUsedMs: 9050,
    });
  });

  it('takes the count of a TCP connection as it is told', () => {
    const { table } = setUp();
    const tcp = seen({ layer: 'tcp', requestStartMs: undefined });
    expect(table.knownBytes(tcp)).toBeUndefined();
    table.bytesSoFar(tcp, 100);
    expect(table.bytesSoFar(tcp, 250)).toMatchObject({ bytes: 250, requests: 0, requestStartMs: undefined });
    expect(table.knownBytes(tcp)).toBe(250);
  });

  it('keeps the same id on two streams apart: two Envoys count alike', () => {
    const { table, ended } = setUp();
    table.request(seen(), 1);
    table.request(seen({ streamId: 2 }), 1);
    expect(table.size).toBe(2);
    table.closed(1, '7');
    expect(ended).toEqual(['7 closed']);
    expect(table.knownBytes(seen({ streamId: 2 }))).toBe(1);
  });
});

describe('how a connection leaves', () => {
  it('when its end was logged, once; an id that is not there is nothing', () => {
    const { table, ended } = setUp();
    table.request(seen(), 1);
    table.closed(1, '7');
    table.closed(1, '7');
    expect(ended).toEqual(['7 closed']);
    expect(table.size).toBe(0);
  });

  it('when it was quiet for so long, not before', () => {
    const { table, ended } = setUp();
    table.request(seen(), 1);
    table.request(seen({ connectionId: '8', lastUsedMs: 5000 }), 1);
    table.advance(61_019);
    expect(ended).toEqual([]);
    table.advance(61_020);
    expect(ended).toEqual(['7 quiet']);
    table.advance(65_000);
    expect(ended).toEqual(['7 quiet', '8 quiet']);
  });

  it('when its stream ends, at once and alone', () => {
    const { table, ended, ids } = setUp();
    table.request(seen(), 1);
    table.request(seen({ streamId: 2, connectionId: '9' }), 1);
    table.endStream(1);
    expect(ended).toEqual(['7 stream_ended']);
    expect(ids()).toEqual(['9']);
  });

  it('when the table is full, the one unused for longest first', () => {
    const { table, ended, ids } = setUp({ maxConnections: 2 });
    for (const connectionId of ['1', '2', '1', '3']) table.request(seen({ connectionId }), 1);
    expect(ended).toEqual(['2 evicted']);
    expect(ids()).toEqual(['1', '3']);
  });
});

describe('our clock that was set back', () => {
  const hour = 3_600_000;

  it('lets go of a quiet connection a quiet time later, not when the clock is where it was', () => {
    const { table, ended } = setUp();
    table.request(seen({ lastUsedMs: hour }), 1);
    table.advance(hour);
    table.advance(250);
    table.advance(60_249);
    expect(ended).toEqual([]);
    table.advance(60_250);
    expect(ended).toEqual(['7 quiet']);
  });

  it('counts from the latest use after it', () => {
    const { table, ended } = setUp();
    table.request(seen({ lastUsedMs: hour }), 1);
    table.advance(hour);
    table.advance(250);
    table.request(seen({ lastUsedMs: 1000 }), 1);
    table.advance(60_999);
    expect(ended).toEqual([]);
    table.advance(61_000);
    expect(ended).toEqual(['7 quiet']);
  });
});
