import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createVitest } from 'vitest/node';
import { FakeMachine } from '../support/fake-machine.ts';
import { needPart, part } from '../support/part.ts';
import SkipReporter from '../support/skip-reporter.ts';

test('a part is what its variable names', () => {
  const machine = new FakeMachine();
  machine.command('jaeger', ':');
  const named = machine.script('mine/jaeger', ':');

  expect(part('JAEGER_BIN', machine.env({ JAEGER_BIN: named }))).toBe(named);
});

test('without the variable it is the command on PATH', () => {
  const machine = new FakeMachine();
  const promtool = machine.command('promtool', ':');

  expect(part('PROMTOOL', machine.env())).toBe(promtool);
  expect(part('EFCHECK', machine.env())).toBeUndefined();
});

test('a variable that names no file is an error, not a skip', () => {
  expect(() => part('PEER_BIN', { PEER_BIN: '/nowhere/peer' })).toThrow(
    'PEER_BIN names /nowhere/peer, which is not there',
  );
});

test('a test that needs a missing part is skipped, and the run ends with the reason and the count', async () => {
  const machine = new FakeMachine();
  const support = join(import.meta.dirname, '../support');
  machine.file(
    'needs.test.ts',
    `import { test } from 'vitest';
     import { needPart } from ${JSON.stringify(join(support, 'part.ts'))};
     test('spans arrive', (context) => { needPart(context, 'JAEGER_BIN', {}); throw new Error('not reached'); });
     test('sums', () => {});`,
  );
  const printed: string[] = [];
  const reporter = new SkipReporter({ print: (line) => printed.push(line) });

  const vitest = await createVitest({ root: machine.root, config: false, watch: false, reporters: [reporter] });
  await vitest.start();
  await vitest.close();

  expect(printed).toEqual(['skipped: JAEGER_BIN is not set and there is no jaeger on PATH: spans arrive', '1 skipped']);
});

test('a part that is there is handed to the test', () => {
  const machine = new FakeMachine();
  const jaeger = machine.command('jaeger', ':');
  const skip = (): never => {
    throw new Error('skipped');
  };

  expect(needPart({ skip }, 'JAEGER_BIN', machine.env())).toBe(jaeger);
});
