import { expect, it } from 'vitest';
import type { UpstreamConnection } from '../../src/assemble/connection-table.ts';
import { PinHistory } from '../../src/flow/pin-history.ts';
import { endpoint, reporter } from '../support/entries.ts';
import { pin } from '../support/judged.ts';

const connection: UpstreamConnection = {
  streamId: 1,
  reporter,
  layer: 'http',
  cluster: 'app',
  peer: endpoint('127.0.0.11:8080'),
  connectionId: '7',
  openedMs: 1000,
  requestStartMs: 2000,
  lastUsedMs: 2020,
  clockUncertaintyMs: 0,
  requests: 1,
  bytes: 30,
};
const stale = pin({ pin: 'stale', leftAtMs: 1500 });

it('remembers a pin that is over, with when and how', () => {
  const history = new PinHistory(10);
  expect(history.ended(connection, 'closed', stale, 3000)).toMatchObject({ clearedMs: 3000, how: 'closed' });
  history.ended(connection, 'quiet', pin({ pin: 'draining', leftAtMs: 1500 }), 4000);
  expect(history.cleared().map(({ clearedMs, how }) => [clearedMs, how])).toEqual([
    [3000, 'closed'],
    [4000, 'quiet'],
  ]);
});

it('does not call a pin cleared whose stream moved on, or that the table had no room for: it may still be in use', () => {
  const history = new PinHistory(10);
  expect(history.ended(connection, 'stream_ended', stale, 3000)).toBeUndefined();
  expect(history.ended(connection, 'evicted', stale, 3000)).toBeUndefined();
  expect(history.cleared()).toEqual([]);
});

it('has nothing to say of a connection whose endpoint never left', () => {
  const history = new PinHistory(10);
  history.ended(connection, 'closed', pin(), 3000);
  expect(history.cleared()).toEqual([]);
});

it('forgets the oldest over its bound', () => {
  const history = new PinHistory(2);
  for (const atMs of [1, 2, 3]) history.ended(connection, 'closed', stale, atMs);
  expect(history.cleared().map(({ clearedMs }) => clearedMs)).toEqual([2, 3]);
});
