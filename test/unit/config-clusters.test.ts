import { expect, test } from 'vitest';
import { checkConfig } from '../../src/config/check-config.ts';
import { createClusterRules } from '../../src/config/cluster-rules.ts';

function rules(text: string) {
  const checked = checkConfig(text);
  if (!checked.ok) throw new Error('the text of the test is wrong');
  return createClusterRules(checked.config);
}

test('the first entry that matches wins, the rest is the general setting', () => {
  const rule = rules(`
success: {httpFailFrom: 400}
traces: {slowMs: 700}
clusters:
  - {match: pay, host: pay.example.com, graceMs: 0, windowMs: 9, idleTimeoutMs: 0, expectPin: true}
  - {match: "pay*", slowMs: 50, success: {grpcFail: [DATA_LOSS, 8]}}
`);
  expect(rule('pay')).toEqual({
    host: 'pay.example.com',
    graceMs: 0,
    windowMs: 9,
    idleTimeoutMs: 0,
    expectPin: true,
    slowMs: 700,
    success: { httpFailFrom: 400, grpcFail: new Set([2, 4, 12, 13, 14, 15]) },
  });
  expect(rule('payments')).toEqual({
    host: undefined,
    graceMs: undefined,
    windowMs: 0,
    idleTimeoutMs: undefined,
    expectPin: false,
    slowMs: 50,
    success: { httpFailFrom: 400, grpcFail: new Set([15, 8]) },
  });
  expect(rule('other')).toMatchObject({ slowMs: 700, success: { httpFailFrom: 400 } });
});

test.each([
  ['*', '', true],
  ['outbound|443||*', 'outbound|443||a.example.com', true],
  ['*.example.com', 'a.example.org', false],
  ['a*b*c', 'a1b2c', true],
  ['a*b*c', 'acb', false],
  ['ab*ba', 'aba', false],
  ['a.c', 'abc', false],
  ['a**b', 'ab', true],
  ['*a*', 'bab', true],
])('pattern %j against %j: %j', (match, cluster, matches) => {
  const rule = rules(JSON.stringify({ clusters: [{ match, graceMs: 1 }] }));
  expect(rule(cluster).graceMs === 1).toBe(matches);
});
