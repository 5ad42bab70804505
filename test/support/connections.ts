import type { UpstreamConnection } from '../../src/model/upstream-connection.ts';
import { endpoint, reporter } from './entries.ts';

/** Connection 7 of an HTTP pool to 127.0.0.11:8080, opened at 1000 and last used at 2020, unless told otherwise. */
export function connection(overrides: Partial<UpstreamConnection> = {}): UpstreamConnection {
  return {
    serial: 1,
    streamId: 1,
    reporter,
    layer: 'http',
    cluster: 'app',
    peer: endpoint('127.0.0.11:8080'),
    connectionId: '7',
    openedMs: 1000,
    requestStartMs: 2000,
    lastUsedMs: 2020,
    lastHeardMs: 2020,
    clockUncertaintyMs: 0,
    requests: 1,
    bytes: 30,
    underWay: new Map(),
    ...overrides,
  };
}
