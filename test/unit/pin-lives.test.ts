import { describe, expect, it } from 'vitest';
import { type EndpointCleared, PinLives } from '../../src/endpoints/pin-lives.ts';
import type { UpstreamConnection } from '../../src/model/upstream-connection.ts';
import type { PinVerdict } from '../../src/model/verdict.ts';
import { connection } from '../support/connections.ts';
import { pin } from '../support/judged.ts';

const left = 10_000;
const draining = pin({ pin: 'draining', leftAtMs: left });
const stale = pin({ pin: 'stale', leftAtMs: left });
const current = pin({ pin: 'current' });
const unknown = pin({ pin: 'unknown', reason: 'source_stale' });

function setUp(maxCleared = 10) {
  const events: string[] = [];
  const drains: EndpointCleared[] = [];
  const lives = new PinLives(
    { maxCleared, waitMs: 60_000 },
    {
      changed: (event, life) =>
        events.push(
          [
            event,
            life.connection.connectionId,
            'how' in life ? life.how : undefined,
            'by' in life ? life.by : undefined,
          ]
            .filter(Boolean)
            .join(' '),
        ),
      endpointCleared: (endpoint) => drains.push(endpoint),
    },
  );
  const see = (nowMs: number, ...rows: [PinVerdict, Partial<UpstreamConnection>?][]) =>
    lives.update(
      rows.map(([verdict, of]) => ({ connection: connection(of), verdict })),
      nowMs,
    );
  return { lives, events, drains, see };
}

describe('the life of a pin', () => {
  it('begins when its endpoint leaves, becomes stale, and ends with its connection, by whom if Envoy said it', () => {
    const { lives, events, see } = setUp();
    see(9000, [current]);
    see(11_000, [draining]);
    see(12_000, [draining]);
    see(21_000, [stale]);
    see(22_000, [stale]);
    lives.ended(connection({ lastUsedMs: 22_500 }), 'closed', stale, 'server', 23_000);
    see(24_000);
    expect(events).toEqual(['opened 7', 'stale 7', 'cleared 7 closed server']);
    expect(lives.cleared()).toMatchObject([
      {
        pin: 'stale',
        leftAtMs: left,
        sinceMs: 11_000,
        clearedMs: 23_000,
        how: 'closed',
        by: 'server',
        connection: { lastUsedMs: 22_500 },
      },
    ]);
  });

  it('of one that was pinned only between two looks is whole all the same', () => {
    const { lives, events } = setUp();
    lives.ended(connection(), 'closed', stale, undefined, 11_000);
    expect(events).toEqual(['opened 7', 'stale 7', 'cleared 7 closed']);
  });

  it('is over when the endpoint is listed again, and is no drain', () => {
    const { events, drains, see } = setUp();
    see(11_000, [draining]);
    see(12_000, [current]);
    expect(events).toEqual(['opened 7', 'cleared 7 relisted']);
    expect(drains).toEqual([]);
  });

  it('does not change because a source cannot tell any more', () => {
    const { events, see } = setUp();
    see(11_000, [stale]);
    see(12_000, [unknown]);
    see(13_000, [stale]);
    expect(events).toEqual(['opened 7', 'stale 7']);
  });

  it('goes on when another log stream tells of its connection, and is lost sight of if none does', () => {
    const { lives, events, see } = setUp();
    see(11_000, [stale], [stale, { serial: 2, connectionId: '8' }]);
    lives.ended(connection(), 'stream_ended', stale, undefined, 12_000);
    lives.ended(connection({ serial: 2, connectionId: '8' }), 'stream_ended', stale, undefined, 12_000);
    see(20_000, [stale, { streamId: 2 }]);
    see(72_000, [stale, { streamId: 2 }]);
    expect(events).toEqual(['opened 7', 'stale 7', 'opened 8', 'stale 8']);
    see(72_001, [stale, { streamId: 2 }]);
    expect(events.slice(4)).toEqual(['cleared 8 moved']);
  });

  it('has nothing to say of a connection whose endpoint never left', () => {
    const { lives, events, see } = setUp();
    see(9000, [current], [unknown, { serial: 2 }]);
    lives.ended(connection(), 'closed', current, 'client', 9500);
    expect(events).toEqual([]);
  });

  it('is remembered in a bounded list', () => {
    const { lives } = setUp(2);
    for (const serial of [1, 2, 3])
      lives.ended(connection({ serial, connectionId: `${serial}` }), 'closed', stale, undefined, 11_000);
    expect(lives.cleared().map(({ connection: { connectionId } }) => connectionId)).toEqual(['2', '3']);
  });
});

describe('an endpoint', () => {
  it('is drained with its last pin: when it was last used, and how many are known to be closed', () => {
    const { lives, drains, see } = setUp();
    const second = { serial: 2, connectionId: '8', lastUsedMs: 14_000 };
    see(11_000, [draining], [draining, second]);
    lives.ended(connection(second), 'closed', draining, 'client', 15_000);
    expect(drains).toEqual([]);
    lives.ended(connection({ lastUsedMs: 13_000 }), 'quiet', draining, undefined, 75_000);
    expect(drains).toEqual([
      { cluster: 'app', endpoint: '127.0.0.11:8080', leftAtMs: left, lastUsedMs: 14_000, pins: 2, closed: 1 },
    ]);
  });

  it('has not moved away where it is heard of again, though no source can tell of its endpoint', () => {
    const { lives, events, see } = setUp();
    see(11_000, [stale]);
    lives.ended(connection(), 'stream_ended', stale, undefined, 12_000);
    see(13_000, [unknown]);
    see(80_000, [unknown]);
    see(81_000, [stale]);
    expect(events).toEqual(['opened 7', 'stale 7']);
  });

  it('is not drained because its pins moved to another replica, or had no room here', () => {
    const { lives, drains, see } = setUp();
    see(11_000, [draining], [draining, { serial: 2 }]);
    lives.ended(connection({ serial: 2 }), 'evicted', draining, undefined, 12_000);
    lives.ended(connection(), 'stream_ended', draining, undefined, 12_000);
    see(80_000);
    expect(lives.cleared().map(({ how }) => how)).toEqual(['evicted', 'moved']);
    expect(drains).toEqual([]);
  });
});
