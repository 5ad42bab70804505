import { afterEach, expect, it } from 'vitest';
import { Observer } from '../../src/cli/drained/observer.ts';
import { judgeDrained } from '../../src/judge/drained.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { cart, shop, startFakeReplica } from '../support/fake-replica.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

/** An observer whose time passes only when told, over one replica. */
async function setUp(quietForMs = 20_000) {
  const replica = cleanup.use(await startFakeReplica({ reporters: [{ reporter: shop }, { reporter: cart }] }));
  let nowMs = Date.now();
  const observer = new Observer({
    from: [new URL(`${replica.url}/`)],
    target: { kind: 'endpoint', text: '10.0.0.7' },
    timeoutMs: 2000,
    maxBytes: 1 << 20,
    resolve: () => Promise.resolve([]),
    now: () => nowMs,
    quietForMs,
    ignored: [],
  });
  return {
    after: async (ms: number, shopStreams: number) => {
      nowMs += ms;
      replica.script.reporters = [{ reporter: shop, streams: shopStreams }, { reporter: cart }];
      const verdict = judgeDrained(await observer.observe(new AbortController().signal));
      return [
        verdict.state,
        ...verdict.blind.map(({ reason, passesAtMs }) => [reason, passesAtMs && passesAtMs - nowMs]),
      ];
    },
  };
}

it('a reporter that was silent for long did not tell of that time: the quiet time begins anew when it is back', async () => {
  const { after } = await setUp();
  expect(await after(0, 1)).toEqual(['drained']);
  expect(await after(2000, 0)).toEqual(['blind', ['reporter_silent', undefined]]);
  expect(await after(6000, 0)).toEqual(['blind', ['reporter_silent', undefined]]);
  expect(await after(1000, 1)).toEqual(['blind', ['reporter_silent', 20_000]]);
  expect(await after(19_000, 1)).toEqual(['blind', ['reporter_silent', 1000]]);
  expect(await after(1000, 1)).toEqual(['drained']);
});

it('a log stream that was away for a moment lost nothing', async () => {
  const { after } = await setUp();
  await after(0, 1);
  expect(await after(2000, 0)).toEqual(['blind', ['reporter_silent', undefined]]);
  expect(await after(2000, 1)).toEqual(['drained']);
});
