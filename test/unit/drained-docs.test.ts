import { afterEach, expect, it } from 'vitest';
import { exitCodes, wrongArguments } from '../../src/cli/drained/decide.ts';
import { blindReasons, drainStates } from '../../src/judge/drain-facts.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { readDoc, tableOf } from '../support/doc-tables.ts';
import { holder, leftEndpoint, startFakeReplica } from '../support/fake-replica.ts';
import { runDrained } from '../support/run-drained.ts';

const page = readDoc('drained.md');
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const words = (header: string[]) => tableOf(page, header).map(([word = '']) => word.replaceAll('`', ''));

it('docs/drained.md has every verdict, reason and exit code, and no other', () => {
  expect(words(['verdict', 'when; the first that holds'])).toEqual([...drainStates].toReversed());
  expect(words(['reason', 'meaning', 'what to do'])).toEqual([...blindReasons]);
  const codes = new Set([...Object.values(exitCodes), wrongArguments].toSorted((a, b) => a - b));
  expect(words(['code', 'meaning', 'what to do'])).toEqual([...Array.from(codes, String), '130, 143']);
});

/** `a.b[].c` of every value in it. */
function paths(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => paths(one, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, one]) => paths(one, path === '' ? key : `${path}.${key}`));
}

it('docs/drained.md has every field that --json prints, and no other', async () => {
  const advice = { reason: 'tcp_session', changes: ['restart it'] } as const;
  const replica = cleanup.use(
    await startFakeReplica({
      upForMs: 0,
      reporters: [],
      endpoints: [
        leftEndpoint({ holders: [holder({ advice, pin: 'unknown', reason: 'no_source' })] }),
        leftEndpoint({ endpoint: '10.0.0.7:81', state: 'unknown', reason: 'source_stale', listedBy: ['node-1'] }),
      ],
    }),
  );
  const gone = await startFakeReplica();
  await gone.close();
  const { out } = await runDrained([replica, gone], { flags: { json: true, timeout: '0s', ignoreReporter: ['x'] } });
  expect([...new Set(paths(JSON.parse(out)))].toSorted()).toEqual(words(['field', 'meaning']).toSorted());
});
