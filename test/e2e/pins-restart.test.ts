import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { startSidelight } from '../../src/cli/demo/sidelight-process.ts';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import { DnsServer } from '../../src/lab/dns-server.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { asksFor, type Move, newIp, oldIp, setUpMove } from '../support/moving-name.ts';
import { parsePrometheusText, total } from '../support/prometheus-text.ts';
import { cleaned, endpointOf, keepSending, pinsOf } from '../support/reporting.ts';
import { until } from '../support/until.ts';

/* Sidelight is started anew in mid cut-over, while an Envoy keeps its connections to the address that left. */
const cluster = 'restarted';
const graceMs = 500;
const program = {
  node: process.execPath,
  flags: [],
  entry: fileURLToPath(new URL('../../src/main.ts', import.meta.url)),
};

/** `start` gives a process of its own, at the same port each time. */
async function setUp(cleanup: Cleanup, stateFile?: string) {
  const dns = cleanup.use(await DnsServer.start());
  let grpcPort = await freePort();
  const { discovery, ...config } = asksFor([cluster], dns, graceMs);
  const start = async () => {
    const listen = { grpc: `127.0.0.1:${grpcPort}`, http: '127.0.0.1:0' };
    const running = cleanup.use(
      await startSidelight(program, {
        ...config,
        discovery: { ...discovery, ...(stateFile === undefined ? {} : { stateFile }) },
        listen,
        join: { lingerMs: 1001 },
      }),
    );
    const metric = async (name: string, labels: Record<string, string> = {}) => {
      const prefixed = Object.entries(labels).map(([key, value]) => [`sidelight_${key}`, value]);
      return total(parsePrometheusText(await running.get('/metrics')), name, Object.fromEntries(prefixed));
    };
    return {
      ...running,
      metric,
      json: async <T>(where: string) => JSON.parse(await running.get(where)) as T,
      requests: (pin: string) => metric('sidelight_pinned_requests_total', { cluster, pin }),
    };
  };
  // Another process may take the port between the choice and the start.
  const before = await start().catch(async () => {
    grpcPort = await freePort();
    return start();
  });
  const move = await setUpMove(cleanup, { dns, sidelight: before }, { name: cluster, kind: 'LOGICAL_DNS' });
  return { before, start, move };
}

type Service = Awaited<ReturnType<Awaited<ReturnType<typeof setUp>>['start']>>;

const pinsNow = async (service: Service) =>
  (await pinsOf(service, cluster)).pins.map(({ pin, reason, endpoint }) => [pin, reason, endpoint.split(':')[0]]);

/** The server closes the connections: what comes then goes to the new address. */
async function expectTheEnd(move: Move, after: Service): Promise<void> {
  move.upstreams.cycle(oldIp);
  await until('current requests on the new address', async () => (await after.requests('current')) > 0);
  expect(move.upstreams.requests(newIp)).toBeGreaterThan(0);
}

it.concurrent(
  'without a state file the old connections are unknown, older_than_view, never stale, current or unlisted',
  cleaned(async (cleanup) => {
    const { before, start, move } = await setUp(cleanup);
    const { failures, stop } = await move.traffic();
    await before.close();
    move.answer(newIp);
    await sleep(1500);
    const after = await start();
    await until('requests over the old connections', async () => (await after.requests('unknown')) > 50);
    expect(await pinsNow(after)).toEqual([
      ['unknown', 'older_than_view', oldIp],
      ['unknown', 'older_than_view', oldIp],
    ]);
    await expectTheEnd(move, after);
    await stop();
    for (const pin of ['stale', 'stale_view', 'draining', 'unlisted']) expect(await after.requests(pin)).toBe(0);
    expect(failures()).toBeLessThanOrEqual(2);
  }),
);

it.concurrent(
  'killed, with a state file: the old connections are known before their next use, then stale again',
  cleaned(async (cleanup) => {
    const stateFile = path.join(cleanup.use(tempDir()).path, 'state.json');
    const { before, start, move } = await setUp(cleanup, stateFile);
    const endpoint = `${oldIp}:${move.upstreams.port}`;
    const { failures, stop } = await move.traffic();
    move.answer(newIp);
    await until('stale pins', async () => (await move.connections('stale')) === 2);
    // What is kept is at most some seconds old.
    const left = (await endpointOf(before, cluster, endpoint))?.leftAtMs ?? Number.NaN;
    await until('it to be kept', () => existsSync(stateFile) && readFileSync(stateFile, 'utf8').includes(String(left)));
    await stop();
    process.kill(before.pid, 'SIGKILL');
    await before.ended;

    const after = await start();
    await until(
      'the old address to have left',
      async () => (await endpointOf(after, cluster, endpoint))?.state === 'left',
    );
    const kept = await endpointOf(after, cluster, endpoint);
    expect(kept?.connections).toEqual({ open: 0, idle: 0, unseen: 2 });
    const holder = { state: 'unseen', layer: 'http', reporter: { nodeId: cluster } };
    expect(kept?.holders).toMatchObject([holder, holder]);
    expect(move.upstreams.openConnections(oldIp)).toBe(2);

    const again = keepSending(cleanup, move.envoy);
    await until('stale again', async () => (await after.metric('sidelight_pins', { cluster, pin: 'stale' })) === 2);
    expect(await pinsNow(after)).toEqual([
      ['stale', undefined, oldIp],
      ['stale', undefined, oldIp],
    ]);
    const idsOf = (holders: { connectionId: string }[] = []) =>
      new Set(holders.map(({ connectionId }) => connectionId));
    expect(idsOf((await pinsOf(after, cluster)).pins)).toEqual(idsOf([...(kept?.holders ?? [])]));
    await expectTheEnd(move, after);
    await again.stop();
    for (const pin of ['unknown', 'stale_view', 'unlisted']) expect(await after.requests(pin)).toBe(0);
    expect(failures() + again.failures()).toBeLessThanOrEqual(2);
  }),
);
