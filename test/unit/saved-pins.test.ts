import { expect, it } from 'vitest';
import { restorePins, type SavedPins, savedPinsSchema, savePins } from '../../src/cli/serve/saved-pins.ts';
import { Recorder } from '../../src/flow/recorder.ts';
import { defaultStatusRule } from '../../src/judge/success.ts';
import type { DiscoveryView } from '../../src/model/view.ts';
import { reporter, upstreamEnd } from '../support/entries.ts';

const nothing: DiscoveryView = {
  cluster: () => undefined,
  clusters: () => [],
  proxy: () => undefined,
  proxies: () => [],
};
const nowMs = 1_000_000;

function recorder(): Recorder {
  const ignore = () => undefined;
  return new Recorder(
    {
      join: { lingerMs: 2500, maxWaitMs: 60_000, maxExchanges: 100, maxAttempts: 8 },
      connections: { maxConnections: 100, quietMs: 60_000, resumeMs: 150_000 },
      rule: () => defaultStatusRule,
      view: () => nothing,
      watch: ignore,
      idleTimeoutMs: () => 3_600_000,
      reporterOf: (base) => base,
      now: () => nowMs,
    },
    {
      exchange: ignore,
      tcpEnd: ignore,
      connectionForgotten: ignore,
      connectionEnd: ignore,
      connectionUse: ignore,
      connectionOpened: ignore,
      endpointTried: ignore,
      joinEvent: ignore,
      attemptCountMismatch: ignore,
    },
  );
}

/** What a second run gets of the first by way of a file. */
function throughAFile(pins: SavedPins): SavedPins {
  return savedPinsSchema.parse(JSON.parse(JSON.stringify(pins)));
}

it('carries connections, and what is under way on them, over a restart, and goes on with them', () => {
  const stream = { id: 1, profile: 'full' as const, reporter };
  const at = (durationMs: number, bytes: number) => [
    upstreamEnd({
      type: 'upstream_periodic',
      startMs: nowMs - 5000,
      durationMs,
      bytesSent: bytes,
      tags: { connectionId: '7', connectionAgeMs: 1000 },
    }),
  ];
  const first = recorder();
  first.opened({ ...stream, id: 9 });
  first.entries({ ...stream, id: 9 }, at(1000, 100), nowMs - 4000);
  const watched: string[] = [];
  const second = recorder();
  restorePins(second, throughAFile(savePins(first)), (cluster, nodeId) => watched.push(`${cluster} ${nodeId}`));
  expect(watched).toEqual(['app shop-1.default']);
  expect(second.board()).toEqual([]);
  expect(second.parked().map(({ connection }) => connection)).toMatchObject([
    { connectionId: '7', cluster: 'app', peer: { text: '127.0.0.11:8080', ip: '127.0.0.11' }, bytes: 0, layer: 'http' },
  ]);
  second.opened(stream);
  second.entries(stream, at(5000, 130), nowMs);
  expect(second.parked()).toEqual([]);
  expect(second.board().map(({ connection }) => connection.bytes)).toEqual([30]);
});

it('keeps a connection whose times could not be mapped', () => {
  const first = recorder();
  first.entries(
    { id: 1, profile: 'full', reporter },
    [upstreamEnd({ startMs: nowMs, durationMs: 5, tags: { connectionId: '7', connectionAgeMs: 10 } })],
    nowMs,
  );
  const second = recorder();
  restorePins(second, throughAFile(savePins(first)), () => undefined);
  expect(second.parked()[0]?.connection.clockUncertaintyMs).toBe(Number.POSITIVE_INFINITY);
});
