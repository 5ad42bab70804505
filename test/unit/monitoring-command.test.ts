import { expect, it } from 'vitest';
import { parse } from 'yaml';
import type { RuleGroup } from '../../src/monitoring/build.ts';
import { buildRules } from '../../src/monitoring/build.ts';
import { commandEnds } from '../support/attach.ts';

/** An alert as the command writes it. */
function alertOf(name: string, ...flags: string[]) {
  const { code, out, err } = commandEnds('rules', 'alerts', ...flags);
  expect([code, err]).toEqual([0, '']);
  const { groups } = parse(out) as { groups: RuleGroup[] };
  const found = groups.flatMap(({ rules }) => rules).find(({ alert }) => alert === name);
  if (found === undefined) throw new Error(`no alert ${name}`);
  return found;
}

it('takes other thresholds, as a number and as a time', () => {
  const flags = ['--set', 'exhausted=0.1', '--set', 'staleHttp=90'];
  expect(alertOf('SidelightRetriesExhausted', ...flags).expr).toContain('sidelight:exhausted:ratio5m > 0.1\n');
  expect(alertOf('SidelightStalePinHttp', ...flags).for).toBe('90s');
  expect(alertOf('SidelightStalePinHttp').for).toBe('5m');
});

it('puts what is given before the runbook and the search, with and without a slash', () => {
  const flags = ['--runbooks', 'https://wiki.example/sidelight/', '--jaeger', 'http://jaeger.example:16686/'];
  expect(alertOf('SidelightStalePinHttp', ...flags).annotations).toMatchObject({
    runbook_url: 'https://wiki.example/sidelight/SidelightStalePinHttp.md',
    traces_url: expect.stringMatching(/^http:\/\/jaeger\.example:16686\/search\?service=/),
  });
});

it('finds targets by the given job', () => {
  expect(alertOf('SidelightReplicaDown', '--job', 'mesh/(blue|green)').expr).toBe('up{job=~"mesh/(blue|green)"} == 0');
});

it('tells every mistake at once, and what was probably meant', () => {
  const given = ['--set', 'exausted=1', '--set', 'exhausted=2', '--set', 'drain', '--set', 'drain=-1'];
  const { code, out, err } = commandEnds('rules', 'alerts', ...given, '--jaeger', 'jaeger:16686', '--job', 'a"b');
  expect([code, out]).toEqual([2, '']);
  expect(err.trim().split('\n')).toEqual([
    'sidelight rules: --set "exausted=1": there is no threshold "exausted"; did you mean exhausted?; docs/alerts.md has them all',
    'sidelight rules: --set "exhausted=2": expected a number over 0, at most 1 (share)',
    'sidelight rules: --set "drain": expected a number over 0 (s)',
    'sidelight rules: --set "drain=-1": expected a number over 0 (s)',
    'sidelight rules: --jaeger: found "jaeger:16686": expected an http or https URL',
    'sidelight rules: --job: found "a\\"b": expected a regular expression without quotes',
  ]);
});

it('with a time scale every time is shorter: windows, waits, intervals, ages, and what is counted within them', () => {
  const { recording, alerts } = buildRules({ timeScale: 1 / 60 });
  const all = [...recording, ...alerts];
  const texts = JSON.stringify(all);
  expect(recording.find(({ interval }) => interval !== undefined)?.interval).toBe('1s');
  expect(texts.match(/\[(1d|1h|2h|5m|10m)\]/g)).toBeNull();
  const rules = all.flatMap((group) => group.rules);
  expect(rules.find(({ alert }) => alert === 'SidelightMaskedFailuresFast')).toMatchObject({
    for: '2s',
    keep_firing_for: '5s',
    expr: expect.stringContaining('sidelight:judged:rate1h * 60 >= 100'),
  });
  expect(rules.find(({ alert }) => alert === 'SidelightDiscoveryBlind')?.expr).toMatch(/> 5$/);
  expect(rules.find(({ alert }) => alert === 'SidelightDrainDoesNotEnd')).toMatchObject({ for: '1m' });
  expect(rules.find(({ record }) => record === 'sidelight:masked:ratio1d')?.expr).toContain('[24m]');
});
