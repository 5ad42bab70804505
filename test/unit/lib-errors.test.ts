import { expect, test } from 'vitest';
import { errorCatalogue, SidelightError } from '../../src/lib/errors.ts';

test('a message says where, what was found and what was expected; the hint says what to do', () => {
  const error = new SidelightError('option_invalid', {
    path: '--port',
    value: 'x',
    expected: 'a number',
    hint: 'Try 1.',
  });
  expect(error.message).toBe('--port: found "x": expected a number');
  expect(error.code).toBe('option_invalid');
  expect(error.hint).toBe('Try 1.');
});

test('the cause is kept and told; without details the catalogue speaks', () => {
  const cause = new Error('no such file');
  const error = new SidelightError('config_unreadable', { path: 'a.yaml', cause });
  expect(error.cause).toBe(cause);
  expect(error.message).toBe('a.yaml: no such file');
  expect(error.hint).toBe('Check the path given with --config and its permissions.');
  expect(new SidelightError('internal').message).toBe('Something happened that should not.');
});

test('a huge value is cut', () => {
  expect(new SidelightError('internal', { value: 'x'.repeat(10_000) }).message.length).toBeLessThan(150);
});

test('docs/reference/errors.md is the catalogue', async () => {
  const rows = Object.entries(errorCatalogue).map(
    ([code, { meaning, hint }]) => `| \`${code}\` | ${meaning} | ${hint} |`,
  );
  const page = [
    '# Errors',
    '',
    'Made from `src/lib/errors.ts`; `test/unit/lib-errors.test.ts` holds the two together.',
    '',
  ];
  const text = [...page, '| code | meaning | what to do |', '|---|---|---|', ...rows, ''].join('\n');
  await expect(text).toMatchFileSnapshot('../../docs/reference/errors.md');
});
