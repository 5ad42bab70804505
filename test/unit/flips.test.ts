import { expect, it } from 'vitest';
import { Flips } from '../../src/endpoints/flips.ts';
import { connection } from '../support/connections.ts';
import { endpoint } from '../support/entries.ts';

const flip = (atMs: number, added: string, removed: string) => ({
  cluster: 'app',
  source: 'dns' as const,
  atMs,
  added: [added],
  removed: [removed],
});
const to = (text: string, openedMs = 1000) => connection({ peer: endpoint(text), openedMs });

it('tells of each change how many connections it left behind, when they were done, and how many were opened since', () => {
  const flips = new Flips(10);
  flips.changed(flip(5000, '127.0.0.12', '127.0.0.11'), [
    to('127.0.0.11:80'),
    to('127.0.0.11:80'),
    to('127.0.0.12:80'),
    connection({ cluster: 'other' }),
  ]);
  flips.opened(to('127.0.0.12:80', 5001));
  flips.opened(to('127.0.0.12:80', 4000));
  flips.changed(flip(9000, '127.0.0.11', '127.0.0.12'), [to('127.0.0.12:80')]);
  flips.opened(to('127.0.0.11:80', 9100));
  flips.endpointCleared({ cluster: 'app', leftAtMs: 5000, lastUsedMs: 7000 });
  flips.endpointCleared({ cluster: 'app', leftAtMs: 4999, lastUsedMs: 7000 });
  expect(flips.of('app')).toMatchObject([
    { atMs: 5000, added: ['127.0.0.12'], connectionsLeft: 2, connectionsOpened: 1, cleared: 1, lastUsedMs: 7000 },
    { atMs: 9000, removed: ['127.0.0.12'], connectionsLeft: 1, connectionsOpened: 1, cleared: 0 },
  ]);
  expect(flips.of('other')).toEqual([]);
});

it('remembers a bounded number of changes of a bounded number of clusters', () => {
  const flips = new Flips(1);
  for (let atMs = 0; atMs < 50; atMs += 1) flips.changed(flip(atMs, '127.0.0.12', '127.0.0.11'), []);
  expect(flips.of('app').map(({ atMs }) => atMs)).toEqual(Array.from({ length: 20 }, (_, index) => 30 + index));
  flips.changed({ ...flip(1, '127.0.0.1', '127.0.0.2'), cluster: 'other' }, []);
  expect(flips.of('app')).toEqual([]);
});
