import { expect, test } from 'vitest';
import { checkConfig } from '../../src/config/check-config.ts';
import { describeSchema } from '../../src/config/describe.ts';
import { printConfig } from '../../src/config/print-config.ts';
import { configReference } from '../../src/config/reference.ts';

test('docs/reference/config.md is the schema', async () => {
  await expect(configReference()).toMatchFileSnapshot('../../docs/reference/config.md');
});

test('every field has a meaning, every number a unit, and units stand in names of times and sizes', () => {
  const fields = describeSchema();
  expect(fields.length).toBeGreaterThan(40);
  expect(fields.filter(({ meaning }) => meaning === '')).toEqual([]);
  expect(fields.filter(({ type, unit }) => /number,/.test(type) && unit === undefined)).toEqual([]);
  expect(fields.filter(({ path, unit }) => (unit === 'ms') !== path.endsWith('Ms'))).toEqual([]);
  expect(fields.filter(({ path, unit }) => (unit === 'bytes') !== path.endsWith('Bytes'))).toEqual([]);
});

test('a printed config is read back as it was', () => {
  const text = 'clusters: [{match: "a*", host: a.example.com, success: {grpcFail: [14]}}]\nlog: {level: debug}';
  const checked = checkConfig(text);
  if (!checked.ok) throw new Error('the text of the test is wrong');
  expect(checkConfig(printConfig(checked.config))).toEqual(checked);
});

test('a printed field tells meaning, range, unit and default; what is absent is there as a comment; a secret is not', () => {
  const checked = checkConfig('tagging: {debugSecret: 0123456789abcdef}');
  if (!checked.ok) throw new Error('the text of the test is wrong');
  const printed = printConfig(checked.config);
  expect(printed).toContain(
    [
      "  # From an exchange's end to its closing; more than Envoy's buffer_flush_interval (1 s).",
      '  # whole number, 1001 to 60000 (ms); default 2500',
      '  lingerMs: 2500',
    ].join('\n'),
  );
  expect(printed).toContain('  # jaegerUrl:\n');
  expect(printed).toContain('  # debugSecret: (set, not shown)\n');
  expect(printed).not.toContain('0123456789abcdef');
});
