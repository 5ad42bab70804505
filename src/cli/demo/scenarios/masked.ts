import { http1Client } from '../../../lab/http1-client.ts';
import { type ClientResult, drive } from '../../../lab/load.ts';
import { sumOf } from '../prometheus-text.ts';
import { check, type Finding, percent, type Scenario } from '../scenario.ts';
import type { ApiExchange } from '../sidelight-process.ts';
import { type Stage, untilTrue } from '../stage.ts';
import { duration } from '../waterfall.ts';

const requests = 80;

/** Sends requests to a cluster one of whose two addresses is dead. */
async function send(stage: Stage, cluster: string): Promise<readonly ClientResult[]> {
  const client = http1Client(stage.port, 8);
  await drive(() => client.request(`/${cluster}`), { concurrency: 8, total: requests });
  client.close();
  await untilTrue('the last log entries', async () => (await outcomes(stage, cluster)).all === requests);
  return client.log;
}

async function outcomes(stage: Stage, cluster: string) {
  const samples = await stage.sidelight.samples();
  const requestsOf = (outcome: string) =>
    sumOf(samples, 'sidelight_requests_total', { sidelight_cluster: cluster, sidelight_outcome: outcome });
  const attemptsOf = (labels: Record<string, string>) =>
    sumOf(samples, 'sidelight_attempts_total', { sidelight_cluster: cluster, ...labels });
  return {
    all: sumOf(samples, 'sidelight_requests_total', { sidelight_cluster: cluster }),
    ok: requestsOf('ok'),
    masked: requestsOf('masked'),
    failed: requestsOf('failed'),
    attempts: attemptsOf({}),
    goodAttempts: attemptsOf({ sidelight_result: 'ok' }),
    timedOut: attemptsOf({ sidelight_cause: 'connect_timeout' }),
    reporters: sumOf(samples, 'sidelight_coverage_reporters', {}),
    hiddenS: sumOf(samples, 'sidelight_masked_latency_seconds_sum', { sidelight_cluster: cluster }),
  };
}

/** B1: retries hide a dead address. */
export const b1: Scenario = {
  id: 'B1',
  title: 'One of two addresses is dead, and retries hide it',
  async play(stage): Promise<Finding> {
    const log = await send(stage, 'b1');
    const good = log.filter((result) => result.ok).length;
    const slowest = Math.max(...log.map((result) => result.durationMs));
    const hosts = await stage.envoy.admin.hosts('b1');
    const retries = await stage.envoy.admin.stat('cluster.b1.upstream_rq_retry_success');
    const seen = await outcomes(stage, 'b1');
    const trace = await longest(stage, 'b1', 'masked');
    return {
      client: `${good} of ${requests} got 200 (${percent(good, requests)}); the slowest took ${duration(slowest).trim()}`,
      envoy: `upstream_rq_retry_success ${retries}; /clusters calls ${hosts.filter((host) => host.healthy).length} of ${hosts.length} hosts healthy`,
      sidelight: [
        `effective ${percent(seen.ok + seen.masked, seen.all)} · first-try ${percent(seen.ok, seen.all)} · actual ${percent(seen.goodAttempts, seen.attempts)} of attempts`,
        `${seen.masked} masked, cause connect_timeout; they cost ${duration(seen.hiddenS * 1000).trim()} in all; amplification ${(seen.attempts / seen.all).toFixed(2)}`,
      ],
      brief: {
        client: `${good} of ${requests} succeeded`,
        sidelight: `${seen.masked} masked: first-try ${percent(seen.ok, seen.all)}`,
      },
      trace,
      checks: [
        check('the client saw only successes', good === requests),
        check("masked equals Envoy's retries that succeeded", seen.masked > 0 && seen.masked === retries),
        check("first-try = 1 - masked / the client's requests", seen.ok === log.length - seen.masked),
        check('every failed attempt timed out connecting', seen.timedOut === seen.attempts - seen.goodAttempts),
        check('attempts = requests + masked', seen.attempts === requests + seen.masked),
        check('the trace shows the failed attempt before the good one', isMaskedTimeout(trace?.attempts)),
      ],
    };
  },
};

/** B2: the same without retries. */
export const b2: Scenario = {
  id: 'B2',
  title: 'The same without retries: the failures surface',
  async play(stage): Promise<Finding> {
    const log = await send(stage, 'b2');
    const bad = log.filter((result) => result.status === 503).length;
    const failedConnects = await stage.envoy.admin.stat('cluster.b2.upstream_cx_connect_timeout');
    const seen = await outcomes(stage, 'b2');
    const trace = await longest(stage, 'b2', 'failed');
    return {
      client: `${bad} of ${requests} got 503 (${percent(bad, requests)})`,
      envoy: `upstream_cx_connect_timeout ${failedConnects}`,
      sidelight: [
        `effective ${percent(seen.ok, seen.all)} · first-try ${percent(seen.ok, seen.all)} · actual ${percent(seen.goodAttempts, seen.attempts)} of attempts`,
        `${seen.failed} failed, cause connect_timeout, not retried; ${seen.masked} masked, and a fact: ${seen.reporters} proxy reports`,
      ],
      brief: { client: `${bad} of ${requests} failed`, sidelight: `${seen.failed} failed, ${seen.masked} masked` },
      trace,
      checks: [
        check('the client saw failures', bad > 0),
        check('failed equals what the client counted', seen.failed === bad),
        check('none is masked, and the proxy is covered', seen.masked === 0 && seen.reporters === 1),
        check('attempts = requests', seen.attempts === requests),
      ],
    };
  },
};

/** The exchange in which the failed attempt shows best. */
async function longest(stage: Stage, cluster: string, outcome: string): Promise<ApiExchange | undefined> {
  const exchanges = (await stage.sidelight.exchanges(outcome)).filter((exchange) => exchange.cluster === cluster);
  return exchanges.toSorted((a, b) => b.durationMs - a.durationMs)[0];
}

function isMaskedTimeout(attempts: readonly { result: string; cause?: string }[] | undefined): boolean {
  const [first, second] = attempts ?? [];
  return first?.cause === 'connect_timeout' && second?.result === 'ok';
}
