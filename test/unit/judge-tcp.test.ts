import { expect, test } from 'vitest';
import { judgeTcpEnd } from '../../src/judge/tcp.ts';
import { tunnelled } from '../support/entries.ts';
import { ip, tcpConnection } from '../support/judged.ts';

const direct = ip('127.0.0.11:5432');
const throughTunnel = tunnelled('127.0.0.11:5432');

test.each([
  ['a reset by the server', { peer: direct, flags: ['UR'], bytesSent: 0 }, 'reset'],
  ['a reset of a tunnel of which nothing came back', { peer: throughTunnel, flags: ['UR'], bytesSent: 0 }, 'unknown'],
  ['a reset of a tunnel that had answered', { peer: throughTunnel, flags: ['UR'], bytesSent: 10 }, 'reset'],
  ['no host', { peer: undefined, flags: ['UH'], bytesSent: 0 }, 'unknown'],
] as const)('%s is a failure', (_, facts, cause) => {
  expect(judgeTcpEnd(tcpConnection(facts))).toEqual({ result: 'failed', cause });
});

test.each([
  ['an orderly end', { peer: direct, flags: [], bytesSent: 0 }, 'ok'],
  ['an orderly end of a tunnel that had answered', { peer: throughTunnel, flags: [], bytesSent: 10 }, 'ok'],
  [
    'an orderly end of a tunnel of which nothing came back',
    { peer: throughTunnel, flags: [], bytesSent: 0 },
    'unknown',
  ],
] as const)('%s is %s', (_, facts, result) => {
  expect(judgeTcpEnd(tcpConnection(facts))).toEqual({ result, cause: undefined });
});
