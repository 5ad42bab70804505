import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import {
  bothKindsOfDns,
  type MoveOptions,
  newIp,
  nothing,
  type OwnMove,
  oldIp,
  setUpOwnMove,
} from '../support/moving-name.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { cleaned } from '../support/reporting.ts';
import { until } from '../support/until.ts';

/* A2: a name moves while a long response is in flight. Its proxy drains, and that is seen before it is over. */
const everything = new Cleanup();
let dns: DnsServer;
let otlp: OtlpReceiver;

beforeAll(async () => {
  dns = everything.use(await DnsServer.start());
  otlp = everything.use(await startOtlpReceiver());
});
afterAll(() => everything.run());

/** Longer than Envoy's own DNS refresh (1 s) takes on a loaded machine, and over long before the response is. */
const graceMs = 3000;
const responseMs = 8000;
/** Between two periodic entries: 5 s as shipped. */
const httpLogFlushMs = 300;

/** A long response that is known to run before anything moves. */
async function startLong(move: OwnMove, path: string) {
  const client = http1Client(move.envoy.port('http'));
  let isOver = false;
  const response = client.request(path).then((result) => {
    isOver = true;
    client.close();
    return { ...result, endMs: Date.now() };
  });
  await until('the long request', async () => (await move.endpoint(oldIp))?.connections.open === 1);
  return { response, isOver: () => isOver };
}

/** The connection that a long request holds, as both answers tell it; absent: not as one that drains. */
async function seenDraining(move: OwnMove): Promise<string | undefined> {
  const [{ pins }, endpoint] = [await move.pins(), await move.endpoint(oldIp)];
  const holder = endpoint?.holders.find(
    ({ state, pin, advice }) => [state, pin, advice?.reason].join() === 'open,draining,long_request',
  );
  return pins.find(({ pin, connectionId }) => pin === 'draining' && connectionId === holder?.connectionId)
    ?.connectionId;
}

const cases: readonly [name: string, path: string, upstreams: NonNullable<MoveOptions['upstreams']>, flows: boolean][] =
  [
    ['HTTP/1.1', `/trickle/${responseMs}`, {}, true],
    ['HTTP/2', `/trickle/${responseMs}`, { protocol: 'http2' }, true],
    ['HTTP/1.1, no byte until its end', `/slow/${responseMs}`, {}, false],
  ];

describe.concurrent.each(bothKindsOfDns)(
  "A2 STRICT_DNS, a long response in flight, Envoy's %s DNS",
  (kind, runtime) => {
    it.each(cases)(
      '%s: draining while it runs, never stale, drained at its end',
      async (_case, path, upstreams, flows) => {
        const protocol = `${upstreams.protocol ?? 'http1'}-${flows ? 'flows' : 'silent'}`;
        const name = `a2-${kind}-${protocol}`;
        await cleaned(async (cleanup) => {
          const move = await setUpOwnMove(cleanup, dns, {
            name,
            runtime,
            upstreams,
            reporter: { httpLogFlushMs },
            rule: { graceMs },
            otlp: { endpoint: otlp.endpoint },
          });
          const { failures, stop } = await move.traffic();
          const long = await startLong(move, path);
          move.answer(newIp);
          await until('it to drain', async () => (await seenDraining(move)) !== undefined, 2000);
          const connectionId = await seenDraining(move);
          await until('requests on the new address', () => move.upstreams.requests(newIp) > 0);
          await stop();
          expect(failures()).toBe(0);
          const { leftAtMs = Number.NaN } = (await move.endpoint(oldIp)) ?? {};

          // The curve grows with what flows, and the request keeps its connection open with or without bytes.
          const bytes = async () => (await move.endpoint(oldIp))?.drain?.bytes ?? 0;
          await until('the grace to pass', () => Date.now() > leftAtMs + graceMs + 500);
          const before = await bytes();
          if (flows) await until('more bytes', async () => (await bytes()) > before);
          expect(await seenDraining(move)).toBe(connectionId);
          expect(long.isOver()).toBe(false);
          expect(await move.stale()).toEqual(nothing);

          const { endMs, ...response } = await long.response;
          expect(response).toMatchObject({ status: 200, error: undefined });
          await until('the drain', () => move.events('endpoint.cleared').length > 0);
          const old = await move.endpoint(oldIp);
          const { drain } = old ?? {};
          expect(Math.abs((drain?.lastUsedMs ?? 0) - endMs)).toBeLessThan(1000);
          expect(move.events('endpoint.cleared')).toMatchObject([{ leftAtMs, lastUsedMs: drain?.lastUsedMs }]);
          const points = drain?.points ?? [];
          const last = points.at(-1);
          expect(last?.requests).toBe(1);
          expect(last?.atMs).toBeLessThanOrEqual(drain?.lastUsedMs ?? 0);
          expect((last?.atMs ?? 0) + (drain?.bucketMs ?? 0)).toBeGreaterThan(drain?.lastUsedMs ?? 0);
          const sum = (of: 'requests' | 'bytes') => points.reduce((all, point) => all + point[of], 0);
          expect([sum('requests'), sum('bytes')]).toEqual([drain?.requests, drain?.bytes]);
          const seconds = (endMs - leftAtMs) / (drain?.bucketMs ?? 1);
          const withBytes = points.filter((point) => point.bytes > 0).length;
          expect(withBytes).toBeGreaterThan(flows ? seconds - 2 : 0);

          expect(await move.stale()).toEqual(nothing);
          const { cleared } = await move.pins();
          expect(cleared.find((pin) => pin.connectionId === connectionId)).toMatchObject({ pin: 'draining' });
          const [exchange] = await otlp.exchanges(
            (span) => span.service === name && span.attributes['url.path'] === path,
            1,
          );
          expect(exchange?.span.attributes).toMatchObject({ 'sidelight.outcome': 'ok', 'sidelight.pin': 'draining' });
          expect(exchange?.attempts[0]?.attributes['network.peer.address']).toBe(oldIp);
        })();
      },
    );
  },
);
