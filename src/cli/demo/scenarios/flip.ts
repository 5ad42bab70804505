import { setTimeout as sleep } from 'node:timers/promises';
import { askDrained } from '../ask-drained.ts';
import { sumOf } from '../prometheus-text.ts';
import { check, type Finding, type Scenario } from '../scenario.ts';
import type { ApiPin } from '../sidelight-process.ts';
import { graceMs, hostOf, newIp, oldIp, type Stage, untilTrue } from '../stage.ts';
import { keepSending, type Traffic } from '../traffic.ts';

function flip(stage: Stage, cluster: string): void {
  stage.dns.set(hostOf(cluster), { kind: 'addresses', addresses: [newIp], ttlSeconds: 1 });
}

async function pinsOf(stage: Stage, cluster: string, pin?: string): Promise<ApiPin[]> {
  const { pins } = await stage.sidelight.pins();
  return pins.filter((row) => row.cluster === cluster && (pin === undefined || row.pin === pin));
}

async function leftOf(stage: Stage, cluster: string): Promise<{ endpoint: string; leftAtMs: number } | undefined> {
  return (await stage.sidelight.clusters()).find((view) => view.cluster === cluster)?.left[0];
}

async function stalePins(stage: Stage, cluster: string): Promise<number> {
  const labels = { sidelight_cluster: cluster, sidelight_pin: 'stale' };
  return sumOf(await stage.sidelight.samples(), 'sidelight_pins', labels);
}

async function staleRequests(stage: Stage, cluster: string): Promise<number> {
  const labels = { sidelight_cluster: cluster, sidelight_pin: 'stale' };
  return sumOf(await stage.sidelight.samples(), 'sidelight_pinned_requests_total', labels);
}

/** A1: STRICT_DNS drains at a flip. */
export const a1: Scenario = {
  id: 'A1',
  title: 'DNS flips under STRICT_DNS: Envoy drains',
  async play(stage): Promise<Finding> {
    const traffic = keepSending(stage, 'a1');
    await untilTrue('current connections', async () => (await pinsOf(stage, 'a1', 'current')).length > 0);
    const destroyed = await stage.envoy.admin.stat('cluster.a1.upstream_cx_destroy_local');
    flip(stage, 'a1');
    const before = performance.now();
    const onNew = stage.upstreams.requests(newIp);
    await untilTrue('requests on the new address', () => stage.upstreams.requests(newIp) > onNew);
    const drainedMs = performance.now() - before;
    await untilTrue('the drain in discovery', async () =>
      (await pinsOf(stage, 'a1')).every((pin) => pin.pin === 'current'),
    );
    await sleep(graceMs + 1500);
    await traffic.stop();
    const closed = (await stage.envoy.admin.stat('cluster.a1.upstream_cx_destroy_local')) - destroyed;
    const stale = await staleRequests(stage, 'a1');
    const bad = traffic.client.log.filter((result) => !result.ok).length;
    const left = await leftOf(stage, 'a1');
    return {
      client: `${traffic.client.log.length} requests, ${bad} failed; on ${newIp} ${(drainedMs / 1000).toFixed(1)} s after the flip`,
      envoy: `upstream_cx_destroy_local +${closed}; /clusters lists ${await hosts(stage, 'a1')}`,
      sidelight: [
        `${oldIp} left DNS at ${clock(left?.leftAtMs ?? Number.NaN)}; since then ${stale} requests over a stale pin`,
      ],
      brief: {
        client: `${traffic.client.log.length} requests, ${bad} failed`,
        sidelight: stale === 0 ? 'current throughout' : `${stale} requests over a stale pin`,
      },
      trace: undefined,
      checks: [
        check('no request failed', bad === 0),
        check('Envoy closed the old pool', closed > 0),
        check('the old address is known to have left', left?.endpoint === oldIp),
        check('nothing was stale', stale === 0 && (await stalePins(stage, 'a1')) === 0),
      ],
    };
  },
};

/** A3 and A5, one after the other: the traffic of the first goes on into the second. */
export function pinnedThenCleared(): [Scenario, Scenario] {
  let traffic: Traffic | undefined;
  return [
    {
      id: 'A3',
      title: 'DNS flips under LOGICAL_DNS (as Envoy up to 1.38): pinned, and nobody says so',
      play: async (stage) => {
        traffic = keepSending(stage, 'a3');
        return playPinned(stage, traffic);
      },
    },
    {
      id: 'A5',
      title: 'The old server closes its connections: the pins clear',
      play: async (stage) => {
        if (traffic === undefined) throw new Error('A5 goes on where A3 stopped');
        return playCleared(stage, traffic);
      },
    },
  ];
}

async function playPinned(stage: Stage, { client }: Traffic): Promise<Finding> {
  await untilTrue('current connections', async () => (await pinsOf(stage, 'a3', 'current')).length > 0);
  flip(stage, 'a3');
  await untilTrue('a stale pin', async () => (await stalePins(stage, 'a3')) > 0);
  await untilTrue('requests over it', async () => (await staleRequests(stage, 'a3')) > 0);
  const stale = await pinsOf(stage, 'a3', 'stale');
  const [pin] = stale;
  const trace = (await stage.sidelight.exchanges()).find(
    (exchange) => exchange.cluster === 'a3' && exchange.pin === 'stale',
  );
  const bad = client.log.filter((result) => !result.ok).length;
  const listed = await hosts(stage, 'a3');
  const leftS = pin?.leftAtMs === undefined ? Number.NaN : (Date.now() - pin.leftAtMs) / 1000;
  const asked = await askDrained(stage, 'a3', { quietFor: '1s', timeout: '0s' });
  return {
    client: `${client.log.length} requests, ${bad} failed: nothing to see`,
    envoy: `/clusters lists ${listed}; membership_change ${await stage.envoy.admin.stat('cluster.a3.membership_change')}`,
    sidelight: [
      `${stale.length} stale pins to ${pin?.endpoint}, which left DNS ${leftS.toFixed(1)} s ago; /clusters says ${listed}: it contradicts the bytes`,
      `connection ${pin?.connectionId}, ${((pin?.ageMs ?? 0) / 1000).toFixed(1)} s old; ${await staleRequests(stage, 'a3')} requests went over stale pins so far`,
      `why: ${pin?.advice?.reason}; what ends it: ${pin?.advice?.changes[0]}`,
      `$ ${asked.command}   # exit code ${asked.exitCode}`,
      `${asked.lines[0]}`,
    ],
    brief: {
      client: `${client.log.length} requests, ${bad} failed`,
      sidelight: `stale: ${stale.length} connections to ${oldIp}`,
    },
    trace,
    checks: [
      check('no request failed', bad === 0),
      check('the pin names the old address', pin?.endpoint.startsWith(`${oldIp}:`) === true),
      check('and its connection and age', pin !== undefined && pin.connectionId !== '' && pin.ageMs > graceMs),
      check('/clusters names only the new address', listed.startsWith(newIp) && !listed.includes(oldIp)),
      check('drained says that it is in use', asked.exitCode === 1),
    ],
  };
}

async function playCleared(stage: Stage, { client, stop }: Traffic): Promise<Finding> {
  stage.upstreams.cycle(oldIp);
  await untilTrue('the pins to clear', async () => (await pinsOf(stage, 'a3', 'stale')).length === 0);
  const series = await stalePins(stage, 'a3');
  const exported = (await stage.sidelight.samples()).some(
    (sample) => sample.name === 'sidelight_pins' && sample.labels['sidelight_pin'] === 'stale',
  );
  const onOld = stage.upstreams.requests(oldIp);
  await sleep(500);
  await stop();
  const cleared = (await stage.sidelight.pins()).cleared.filter((pin) => pin.cluster === 'a3');
  const last = Math.max(...cleared.map((pin) => pin.lastUsedMs));
  const retried = client.log.filter((result) => !result.ok).length;
  const asked = await askDrained(stage, 'a3', { quietFor: '1s', timeout: '30s' });
  return {
    client: `the next requests go to ${newIp}; ${retried} requests were cut by the closing`,
    envoy: `/clusters lists ${await hosts(stage, 'a3')}, as before: it shows no difference`,
    sidelight: [
      `${cleared.length} pins cleared: last used at ${clock(last)}, and quiet since`,
      `sidelight_pins{sidelight_pin="stale"} is gone from /metrics`,
      `$ ${asked.command}   # exit code ${asked.exitCode}`,
      `${asked.lines[0]}`,
    ],
    brief: { client: `requests on ${newIp}`, sidelight: `cleared and drained: last used ${clock(last)}` },
    trace: undefined,
    checks: [
      check('pins were cleared, with their time', cleared.length > 0 && Number.isFinite(last)),
      check('no stale series is left', series === 0 && !exported),
      check('the old server gets nothing more', stage.upstreams.requests(oldIp) === onOld),
      check('drained says so', asked.exitCode === 0),
    ],
  };
}

/** `23:47:05.120`, UTC. */
function clock(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 23) : 'no known time';
}

async function hosts(stage: Stage, cluster: string): Promise<string> {
  return (await stage.envoy.admin.hosts(cluster)).map((host) => host.address).join(', ');
}
