import { afterEach, describe, expect, it } from 'vitest';
import { endpointsAnswer, reportersAnswer } from '../../src/cli/drained/answers.ts';
import { exitCodes } from '../../src/cli/drained/decide.ts';
import { judgeHere } from '../../src/cli/drained/here.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import {
  cart,
  holder,
  leftEndpoint,
  oldEndpoint,
  type Script,
  shop,
  startFakeReplica,
} from '../support/fake-replica.ts';
import { runDrained } from '../support/run-drained.ts';

/* The page says of an endpoint what `sidelight drained` says: both are asked about the same answers. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const cases: [string, number, Partial<Script>][] = [
  ['quiet for long', 0, {}],
  [
    'a connection that has outlived its idle timeout',
    0,
    { endpoints: [leftEndpoint({ holders: [holder({ mayBeOpenUntilMs: -1 })] })] },
  ],
  ['an idle connection', 4, { endpoints: [leftEndpoint({ holders: [holder()] })] }],
  ['an open connection', 1, { endpoints: [leftEndpoint({ holders: [holder({ state: 'open' })] })] }],
  ['used a moment ago', 1, { endpoints: [leftEndpoint({ lastUsedMs: 0 })] }],
  [
    'listed in another cluster',
    1,
    { endpoints: [leftEndpoint(), leftEndpoint({ cluster: 'other', state: 'listed', leftAtMs: undefined })] },
  ],
  ['connections that were forgotten', 4, { endpoints: [leftEndpoint({ forgotten: { mayBeOpenUntilMs: 60_000 } })] }],
  ['nobody reports', 3, { reporters: [] }],
  [
    'somebody who used it is silent',
    3,
    {
      endpoints: [
        leftEndpoint({ holders: [holder({ reporter: cart, reporterConnected: false, mayBeOpenUntilMs: -1 })] }),
      ],
      reporters: [
        { reporter: shop, streams: 1 },
        { reporter: cart, streams: 0 },
      ],
    },
  ],
];

describe.each(cases)('%s', (_, exitCode, script) => {
  it(`is exit code ${exitCode} of the command, and the same on the page`, async () => {
    const replica = cleanup.use(await startFakeReplica(script));
    const answer = async (path: string) => (await fetch(`${replica.url}${path}`)).json();
    const endpoints = endpointsAnswer.parse(await answer('/api/v1/endpoints'));
    const reporters = reportersAnswer.parse(await answer('/api/v1/reporters'));
    const { state } = judgeHere(endpoints, reporters, 300)(oldEndpoint);
    const { code } = await runDrained([replica], { target: oldEndpoint, flags: { timeout: '0s' } });
    expect([code, exitCodes[state]]).toEqual([exitCode, exitCode]);
  });
});

it('what is used at another endpoint, or at another port, is not held against it', () => {
  const quiet = leftEndpoint({ leftAtMs: 0, lastUsedMs: 0 });
  const others = ['10.0.0.8:8080', '10.0.0.7:9090'].map((endpoint) => ({ ...quiet, endpoint, lastUsedMs: 3_600_000 }));
  const nowMs = 3_600_000;
  const endpoints = { nowMs, startedMs: -3_600_000, truncated: false, endpoints: [quiet, ...others] };
  const reporters = {
    nowMs,
    truncated: false,
    reporters: [{ ...shop, profile: 'observe', configVersion: 2, streams: 1, lastEntryMs: nowMs }] as const,
  };
  const judge = judgeHere(endpoints, reporters, 60_000);
  expect([judge(oldEndpoint).state, judge('10.0.0.8:8080').state]).toEqual(['drained', 'in_use']);
});
